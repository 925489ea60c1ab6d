//! `hqueue explain`

use clap::Args;
use hqueue::MessageId;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::print_explanation;
use crate::values;

/// Tell what became of one message, for each subscriber.
///
/// It was delivered (when, where, at which attempt), is in a call, waits (for what), is not wanted, has expired, is a dead letter, or lies below
/// the checkpoint. Details are known of the last 10,000 calls of the partition's broker since its start.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The number of the partition.
    #[arg(value_parser = values::partition)]
    partition: i16,
    /// The message's id, as put and scan print it.
    id: MessageId,
    /// Only for this subscriber.
    #[arg(long, value_name = "NAME", value_parser = values::subscriber)]
    name: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Explain {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let admin = self.connection.open().await?.admin();
        let explanation = admin.explain_message(&self.queue, self.partition, self.id, self.name.as_deref()).await?;
        print_explanation(self.connection.format, &explanation)
    }
}
