//! `hqueue drop`

use clap::Args;

use crate::confirm::Confirm;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Remove a disabled queue with its messages and subscribers.
#[derive(Args, Debug)]
pub(crate) struct Drop {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    connection: Connection,
}

impl Drop {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.confirm.ask(&format!("removes queue {} with all its messages and subscribers", self.queue))?;
        Ok(self.connection.open().await?.admin().drop_queue(&self.queue).await?)
    }
}
