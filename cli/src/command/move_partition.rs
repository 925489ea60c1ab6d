//! `hqueue move`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Give a partition to another broker, where messages are in HBase.
///
/// What is under way in the partition ends first, so that nothing is pushed twice; returns when the other broker owns it. It stays there until
/// a broker comes or goes: then the balancer spreads all queues evenly, unless it is off.
#[derive(Args, Debug)]
pub(crate) struct Move {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::partition)]
    partition: i16,
    /// Its name, or HOST:PORT, as `hqueue status` shows them.
    broker: String,
    #[command(flatten)]
    connection: Connection,
}

impl Move {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        Ok(self.connection.open().await?.admin().move_partition(&self.queue, self.partition, &self.broker).await?)
    }
}
