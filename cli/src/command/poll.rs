//! `hqueue poll`

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use clap::Args;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use hqueue::{ErrorCode, Polled, Position, PullConsumer};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::{partitions, say, write_message};
use crate::values;

/// More would be a mistake.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 86_400);
/// So many commits are under way at once.
const COMMITS: usize = 32;

/// Fetch messages once, print them, and commit how far it came.
///
/// The position is kept by the broker under the name: the next poll goes on there. Each partition gets its share. If partitions could not
/// be read, because their broker is away, what came of the others is printed and committed, and the exit code is 1.
#[derive(Args, Debug)]
pub(crate) struct Poll {
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The name under which the position is kept; it is added to the queue's subscribers if it is new.
    #[arg(long, value_name = "S", value_parser = values::subscriber)]
    name: String,
    /// Print so many messages at most, of all partitions together.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = values::number::<u32>(1, 100_000, ""))]
    max: u32,
    /// Where to begin, if the name is new.
    #[arg(long, value_name = "POSITION", default_value = "latest", allow_hyphen_values = true)]
    from: Position,
    /// Leave the position where it is: the next poll prints the same again.
    #[arg(long)]
    no_commit: bool,
    /// If there is nothing, wait so long for the first message of any partition.
    #[arg(long, value_name = "D", value_parser = values::length(Duration::ZERO, LONGEST_WAIT))]
    wait: Option<Duration>,
    #[command(flatten)]
    connection: Connection,
}

impl Poll {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let queue = self.connection.open().await?.queue(&self.queue)?;
        let consumer = queue.pull_consumer(self.name.as_str())?;
        let polled = self.poll(&consumer).await?;
        let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
        for message in polled.messages() {
            write_message(&mut out, self.connection.format, message)?;
        }
        // What could not be printed is not committed.
        out.flush()?;
        drop(out);
        if !self.no_commit {
            let commits = polled.fetched.iter().map(|fetched| consumer.commit(fetched.partition, fetched.next));
            stream::iter(commits).buffer_unordered(COMMITS).try_collect::<()>().await?;
        }
        unread(&polled)
    }

    /// As the library does it, with the name made if it is new.
    async fn poll(&self, consumer: &PullConsumer) -> Result<Polled, Failure> {
        let partitions = consumer.partitions().await?;
        let wait = self.wait.unwrap_or_default();
        match consumer.poll(&partitions, self.max, wait).await {
            // The name is new.
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                consumer.begin(self.from).await?;
                Ok(consumer.poll(&partitions, self.max, wait).await?)
            }
            polled => Ok(polled?),
        }
    }
}

/// Fails if there are partitions of which nothing could be read, offline ones before others. What gave messages first and failed then is
/// only said.
fn unread(polled: &Polled) -> Result<(), Failure> {
    // A subscriber may read some partitions only.
    let failed = polled.failed.iter().filter(|(_, error)| error.code() != Some(ErrorCode::NotFound));
    let (mut offline, mut others) = (Vec::new(), Vec::new());
    for (partition, error) in failed {
        if polled.fetched.iter().any(|fetched| fetched.partition == *partition) {
            say(format_args!("hqueue: partition {partition}: {error}"));
        } else if error.code() == Some(ErrorCode::Offline) {
            offline.push((*partition, error));
        } else {
            others.push((*partition, error));
        }
    }
    let mut reasons = Vec::new();
    for (kind, failed) in [("offline, nothing was read of them", &offline), ("could not be read", &others)] {
        if let Some((_, first)) = failed.first() {
            let numbers: Vec<i16> = failed.iter().map(|(partition, _)| *partition).collect();
            reasons.push(format!("{}: {kind}; {first}", partitions(&numbers)));
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Failure::failed(reasons.join("\nhqueue: "))) }
}

#[cfg(test)]
mod tests {
    use hqueue::{Error, Fetched, MessageId};

    use super::*;

    fn refused(code: ErrorCode, message: &str) -> Error {
        Error::Refused { code, message: message.to_owned() }
    }

    fn fetched(partition: i16) -> Fetched {
        Fetched { partition, messages: Vec::new(), next: MessageId::MIN }
    }

    #[test]
    fn partitions_that_could_not_be_read_are_named() {
        let failed = vec![
            (0, refused(ErrorCode::Offline, "partition 0 is offline: its broker a is away")),
            (1, refused(ErrorCode::Offline, "partition 1 is offline: its broker a is away")),
            (3, refused(ErrorCode::NotFound, "not of this subscriber")),
            (4, refused(ErrorCode::Failed, "damaged")),
        ];
        let Err(Failure::Failed(reason)) = unread(&Polled { fetched: vec![fetched(2)], failed }) else { panic!() };
        assert_eq!(
            reason,
            "partitions 0-1: offline, nothing was read of them; partition 0 is offline: its broker a is away\n\
             hqueue: partition 4: could not be read; damaged"
        );
    }

    #[test]
    fn all_that_could_be_read_is_success() {
        unread(&Polled { fetched: vec![fetched(0)], failed: vec![(3, refused(ErrorCode::NotFound, "x"))] }).unwrap();
        let later = vec![(0, refused(ErrorCode::Offline, "gone meanwhile"))];
        unread(&Polled { fetched: vec![fetched(0)], failed: later }).unwrap();
    }
}
