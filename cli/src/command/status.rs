//! `hqueue status`

use clap::Args;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::{print_cluster_status, print_queue_status};

/// Show brokers and queues, or the partitions and subscriptions of one queue.
#[derive(Args, Debug)]
pub(crate) struct Status {
    queue: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Status {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let admin = self.connection.open().await?.admin();
        let format = self.connection.format;
        match &self.queue {
            None => print_cluster_status(format, &admin.cluster_status().await?),
            Some(queue) => print_queue_status(format, &admin.queue_status(queue).await?),
        }
    }
}
