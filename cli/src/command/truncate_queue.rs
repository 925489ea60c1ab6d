//! `hqueue truncate_queue`

use clap::Args;

use crate::confirm::Confirm;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Remove all messages of a queue. Subscribers stay, ids go on rising.
#[derive(Args, Debug)]
pub(crate) struct TruncateQueue {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    connection: Connection,
}

impl TruncateQueue {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.confirm.ask(&format!("removes all messages of queue {}", self.queue))?;
        Ok(self.connection.open().await?.admin().truncate_queue(&self.queue).await?)
    }
}
