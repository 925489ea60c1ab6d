//! `hqueue pause`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Pause a subscriber: no more calls until it is resumed; those under way end.
#[derive(Args, Debug)]
pub(crate) struct Pause {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::subscriber)]
    subscriber: String,
    #[command(flatten)]
    connection: Connection,
}

impl Pause {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        Ok(self.connection.open().await?.admin().pause_subscriber(&self.queue, &self.subscriber).await?)
    }
}
