//! `hqueue delete_subscriber`

use clap::Args;

use crate::confirm::Confirm;
use crate::connection::Connection;
use crate::failure::Failure;

/// Remove a subscriber, and with it how far it came.
#[derive(Args, Debug)]
pub(crate) struct DeleteSubscriber {
    queue: String,
    subscriber: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    connection: Connection,
}

impl DeleteSubscriber {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self { queue, subscriber, .. } = &self;
        self.confirm.ask(&format!("removes subscriber {subscriber} of queue {queue}, and with it how far it came"))?;
        Ok(self.connection.open().await?.admin().delete_subscriber(queue, subscriber).await?)
    }
}
