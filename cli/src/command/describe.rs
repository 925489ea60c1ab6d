//! `hqueue describe`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::{print_description, say};
use crate::values;

/// Show how a queue was made, and its state.
#[derive(Args, Debug)]
pub(crate) struct Describe {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    connection: Connection,
}

impl Describe {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let queue = self.connection.open().await?.admin().describe_queue(&self.queue).await?;
        queue.notices.iter().for_each(|notice| say(format_args!("note: {notice}")));
        print_description(self.connection.format, &queue)
    }
}
