//! `hqueue list`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::print_queues;

/// List the queues.
#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    connection: Connection,
}

impl List {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let queues = self.connection.open().await?.admin().list_queues().await?;
        print_queues(self.connection.format, &queues)
    }
}
