//! `hqueue seek`

use clap::Args;
use hqueue::Position;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Move a subscriber, forward or back: its next message is the first at or behind the position.
///
/// Works while the subscriber is served. A call under way does not move it any more.
#[derive(Args, Debug)]
pub(crate) struct Seek {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::subscriber)]
    subscriber: String,
    #[arg(allow_hyphen_values = true)]
    position: Position,
    /// Only this partition; may be given several times.
    #[arg(long = "partition", value_name = "N", value_parser = values::partition)]
    partitions: Vec<i16>,
    #[command(flatten)]
    connection: Connection,
}

impl Seek {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let admin = self.connection.open().await?.admin();
        Ok(admin.seek_subscriber(&self.queue, &self.subscriber, self.position, &self.partitions).await?)
    }
}
