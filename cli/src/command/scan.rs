//! `hqueue scan`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::ffi::OsStringExt;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use hqueue::{HQueue, MessageId, Position};
use indicatif::ProgressBar;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::write_message;
use crate::progress;
use crate::values::{self, UNLIMITED};

/// Asked for at once.
const BATCH: usize = 1000;

/// Print stored messages, partition by partition.
#[derive(Args, Debug)]
pub(crate) struct Scan {
    #[arg(value_parser = values::queue)]
    queue: String,
    /// Only this partition; may be given several times.
    #[arg(long = "partition", value_name = "N", value_parser = values::partition)]
    partitions: Vec<i16>,
    /// Only messages of this topic; may be given several times.
    #[arg(long = "topic", value_name = "T", value_parser = values::topic())]
    topics: Vec<OsString>,
    /// The first position wanted, inclusive.
    #[arg(long, value_name = "POSITION", default_value = "earliest", allow_hyphen_values = true)]
    start: Position,
    /// The first position no longer wanted.
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    stop: Option<Position>,
    /// Print so many messages at most, of all partitions together.
    #[arg(long, value_name = "N", value_parser = values::number::<usize>(0, UNLIMITED, ""))]
    limit: Option<usize>,
    #[command(flatten)]
    connection: Connection,
}

impl Scan {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let hqueue = self.connection.open().await?;
        let queue = hqueue.queue(&self.queue)?;
        let scans = self.scans(&hqueue).await?;
        let mut scanner = queue.combined_partition_scanner(scans);
        let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
        let bar = if io::stdout().is_terminal() {
            // What is printed shows that it goes on.
            ProgressBar::hidden()
        } else {
            progress::messages(self.limit.map(|limit| limit as u64), "messages")
        };
        let mut left = self.limit.unwrap_or(usize::MAX);
        while left > 0 {
            let messages = scanner.next_batch(left.min(BATCH)).await?;
            if messages.is_empty() {
                break;
            }
            for message in &messages {
                write_message(&mut out, self.connection.format, message)?;
            }
            left -= messages.len();
            bar.inc(messages.len() as u64);
        }
        bar.finish_and_clear();
        out.flush()?;
        scanner.close().await;
        Ok(())
    }

    /// What to read of each partition.
    async fn scans(&self, hqueue: &HQueue) -> Result<BTreeMap<i16, hqueue::Scan>, Failure> {
        let topics: Vec<_> = self.topics.iter().map(|topic| topic.clone().into_vec().into()).collect();
        // `latest` is where each partition ends at this moment.
        let last = if self.start == Position::Latest || self.stop == Some(Position::Latest) {
            let status = hqueue.admin().queue_status(&self.queue).await?;
            status.partitions.into_iter().filter_map(|p| Some((p.partition, p.last_id?))).collect()
        } else {
            BTreeMap::new()
        };
        let now = now_ms();
        let partitions = if self.partitions.is_empty() {
            let count = hqueue.queue(&self.queue)?.partitions().await?;
            (0..i16::try_from(count).unwrap_or(i16::MAX)).collect()
        } else {
            self.partitions.clone()
        };
        let scan = |partition: i16| {
            let id = |position: Position| position.resolve(now, last.get(&partition).copied());
            let start = (self.start != Position::Earliest).then(|| id(self.start));
            hqueue::Scan { start, stop: self.stop.map(id), topics: topics.clone() }
        };
        Ok(partitions.into_iter().map(|partition| (partition, scan(partition))).collect())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(MessageId::MAX.timestamp)
}
