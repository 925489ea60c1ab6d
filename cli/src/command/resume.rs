//! `hqueue resume`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Resume a subscriber. A message that blocks is tried again from 0 attempts.
#[derive(Args, Debug)]
pub(crate) struct Resume {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::subscriber)]
    subscriber: String,
    #[command(flatten)]
    connection: Connection,
}

impl Resume {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        Ok(self.connection.open().await?.admin().resume_subscriber(&self.queue, &self.subscriber).await?)
    }
}
