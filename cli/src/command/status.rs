//! `hqueue status`

use clap::Args;
use futures_util::stream::{self, StreamExt};
use hqueue::{Admin, ClusterStatus, ErrorCode, HQueue, QueueStatus};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::{OldestLetter, Subscribers, print_cluster_json, print_cluster_text, print_queue_status};
use crate::values;

/// Queues that are asked after at once.
const AT_ONCE: usize = 16;

/// Show brokers and queues, or the partitions and subscriptions of one queue.
///
/// What is wrong stands at the end: partitions that are offline; subscribers that are blocked, failing, broken, trying again or without an
/// endpoint while messages wait, with the last error; dead letters. DEAD-LETTERED counts from the start of the brokers.
#[derive(Args, Debug)]
pub(crate) struct Status {
    #[arg(value_parser = values::queue)]
    queue: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Status {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let hqueue = self.connection.open().await?;
        let admin = hqueue.admin();
        if let Some(queue) = &self.queue {
            let status = admin.queue_status(queue).await?;
            let letters = if self.connection.is_json() { Vec::new() } else { letters(&hqueue, &status).await };
            return print_queue_status(self.connection.format, &status, &letters);
        }
        let status = admin.cluster_status().await?;
        if self.connection.is_json() {
            return print_cluster_json(&status);
        }
        let subscribers = subscribers(&admin, &status).await;
        print_cluster_text(&status, &subscribers)
    }
}

/// The oldest dead letter of each subscriber that has any: the count in the status begins anew with a broker's start, letters stay.
async fn letters(hqueue: &HQueue, status: &QueueStatus) -> Vec<OldestLetter> {
    // A dead-letter queue has none itself, nor has one whose queue was never made.
    let Ok(letters) = hqueue.queue(&format!("{}.dlq", status.name)) else { return Vec::new() };
    if letters.partitions().await.is_err_and(|error| error.code() == Some(ErrorCode::NotFound)) {
        return Vec::new();
    }
    let asked = status.subscriptions.iter().map(|subscriber| async move {
        let oldest = async { hqueue.queue(&status.name)?.dead_letters(&subscriber.name).await?.next_batch(1).await };
        match oldest.await {
            Ok(batch) => batch.into_iter().next().map(|letter| (subscriber.name.clone(), Ok(letter))),
            Err(error) => Some((subscriber.name.clone(), Err(error))),
        }
    });
    stream::iter(asked).buffered(AT_ONCE).filter_map(std::future::ready).collect().await
}

/// Those of every queue that has any.
async fn subscribers(admin: &Admin, status: &ClusterStatus) -> Vec<Subscribers> {
    let queues = status.queues.iter().filter(|queue| queue.subscriptions > 0).map(|queue| queue.name.clone());
    let asked = queues.map(|queue| async move {
        let known = admin.list_subscribers(&queue).await;
        (queue, known)
    });
    stream::iter(asked).buffered(AT_ONCE).collect().await
}
