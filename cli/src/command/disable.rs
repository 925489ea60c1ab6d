//! `hqueue disable`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Refuse puts to a queue and hold its pushes; scans go on.
#[derive(Args, Debug)]
pub(crate) struct Disable {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    connection: Connection,
}

impl Disable {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        Ok(self.connection.open().await?.admin().disable_queue(&self.queue).await?)
    }
}
