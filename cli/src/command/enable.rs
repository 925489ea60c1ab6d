//! `hqueue enable`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Take puts to a queue and push its messages again.
#[derive(Args, Debug)]
pub(crate) struct Enable {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    connection: Connection,
}

impl Enable {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        Ok(self.connection.open().await?.admin().enable_queue(&self.queue).await?)
    }
}
