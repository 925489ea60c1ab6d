//! `hqueue demo`

mod guide;
mod line;
mod times;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use hqueue::{HQueue, Listeners, Queue, QueueSpec, Subscription};
use hqueue_broker::{Broker, Options};
use hqueue_protocol::limits::MAX_REQUEST_BYTES;

use self::line::{Line, Watched};
use self::times::Times;
use crate::failure::Failure;
use crate::input::read_lines;
use crate::output::{escaped, say};
use crate::signals::Signals;

const QUEUE: &str = "demo";
/// Lines that are put and not pushed yet.
const UNDER_WAY: usize = 16;

/// See it work: a broker, a queue and a subscriber in one process.
///
/// Each line of FILE, or each that you type, is put into a queue, stored durably and pushed to the subscriber; it is shown with its partition,
/// its id and the time from put to push. Everything is in a temporary folder and gone afterwards.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Put the lines of this file [default: those of standard input]
    file: Option<PathBuf>,
}

impl Demo {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let file = match &self.file {
            Some(path) => Some(File::open(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?),
            None => None,
        };
        let folder = tempfile::Builder::new().prefix("hqueue-demo-").tempdir().map_err(Failure::failed)?;
        let any_port = ([127, 0, 0, 1], 0).into();
        let options = Options { data: folder.path().join("data"), listen: any_port, http: Some(any_port), ..Options::default() };
        let broker = Broker::start(options).await.map_err(Failure::failed)?;
        let shown = show(&broker, file, &mut signals).await;
        signals.or_end(broker.stop()).await;
        folder.close().map_err(Failure::failed)?;
        shown
    }
}

async fn show(broker: &Broker, file: Option<File>, signals: &mut Signals) -> Result<(), Failure> {
    let url = format!("hqueue://{}", broker.address());
    let hqueue = HQueue::connect(&url).await?;
    let spec = QueueSpec { name: QUEUE.to_owned(), partitions: 4, ttl_seconds: 86_400, ..QueueSpec::default() };
    hqueue.admin().create_queue(&spec).await?;
    let queue = hqueue.queue(QUEUE)?;
    let watched = Watched::default();
    let mut subscriber = queue.create_subscriber(Subscription::new("demo"), Listeners::one(watched.clone()));
    subscriber.start().await?;
    let mut stage = Stage { queue, watched, times: Times::default(), number: 0 };
    let typing = io::stdin().is_terminal();
    say(guide::place(&url, broker.http_address()));
    if typing {
        // Otherwise it is over as soon as the lines are.
        say(guide::attach(&url));
    }
    let mut shown = Ok(Ended::Source);
    if let Some(file) = file {
        shown = stage.show(file, signals).await;
        stage.times.report();
        if typing && matches!(shown, Ok(Ended::Source)) {
            say(format_args!("Type lines to put more; end with ^D."));
            shown = stage.show(io::stdin(), signals).await;
        }
    } else {
        if typing {
            say(format_args!("Type lines to put them; end with ^D."));
        }
        shown = shown.and(stage.show(io::stdin(), signals).await);
        stage.times.report();
    }
    signals.or_end(subscriber.stop("the demo is over")).await;
    shown.map(|_| ())
}

/// Why showing ended.
enum Ended {
    /// All lines were shown.
    Source,
    Signal,
}

struct Stage {
    queue: Queue,
    watched: Watched,
    times: Times,
    /// Of the last line.
    number: u64,
}

impl Stage {
    /// Puts every line and shows it when it was pushed, in order.
    async fn show(&mut self, source: impl Read + Send + 'static, signals: &mut Signals) -> Result<Ended, Failure> {
        let (mut lines, reading) = read_lines(source, MAX_REQUEST_BYTES);
        let mut waiting: VecDeque<Bytes> = VecDeque::new();
        let mut under_way = FuturesOrdered::new();
        let mut at_end = false;
        let ended = loop {
            while under_way.len() < UNDER_WAY
                && let Some(value) = waiting.pop_front()
            {
                self.number += 1;
                under_way.push_back(line::put(self.queue.clone(), self.watched.clone(), self.number, value));
            }
            if at_end && under_way.is_empty() {
                break Ended::Source;
            }
            tokio::select! {
                Some(line) = under_way.next() => self.print(&line?)?,
                some = lines.recv(), if waiting.is_empty() && !at_end => match some {
                    Some(some) => waiting.extend(some.map_err(Failure::failed)?),
                    None => at_end = true,
                },
                _ = signals.next() => break Ended::Signal,
            }
        };
        // It may wait for a line that nobody wants any more.
        reading.abort();
        Ok(ended)
    }

    fn print(&mut self, line: &Line) -> Result<(), Failure> {
        self.times.add(line.took);
        let ms = line.took.as_secs_f64() * 1000.0;
        let hqueue::Placed { partition, id } = line.placed;
        writeln!(io::stdout().lock(), "partition {partition}  {id}  {ms:6.2} ms  {}", escaped(&line.value))?;
        Ok(())
    }
}
