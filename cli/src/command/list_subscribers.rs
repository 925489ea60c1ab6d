//! `hqueue list_subscribers`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::print_subscribers;
use crate::values;

/// List the subscribers of a queue.
#[derive(Args, Debug)]
pub(crate) struct ListSubscribers {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    connection: Connection,
}

impl ListSubscribers {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let subscribers = self.connection.open().await?.admin().list_subscribers(&self.queue).await?;
        print_subscribers(self.connection.format, &subscribers)
    }
}
