//! `hqueue subscribe`

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use hqueue::{Listeners, Message, Position, Subscription};
use tokio::sync::mpsc;

use crate::connection::{Connection, Format};
use crate::failure::Failure;
use crate::output::write_message;
use crate::signals::Signals;
use crate::values;

/// Be a subscriber: print messages as they are pushed.
///
/// What is printed is consumed. SIGTERM and SIGINT end it: the call in hand is finished, then it unregisters. How far it came is kept under
/// its name.
#[derive(Args, Debug)]
pub(crate) struct Subscribe {
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The subscriber's name. Processes with the same name share the messages.
    #[arg(long, value_name = "S", value_parser = values::subscriber)]
    name: String,
    /// Only messages of this topic; may be given several times.
    #[arg(long = "topic", value_name = "T", value_parser = values::topic())]
    topics: Vec<OsString>,
    /// Only this partition; may be given several times.
    #[arg(long = "partition", value_name = "N", value_parser = values::partition)]
    partitions: Vec<i16>,
    /// Where to begin, if the name is new.
    #[arg(long, value_name = "POSITION", default_value = "latest", allow_hyphen_values = true)]
    from: Position,
    /// Where to listen for the broker's calls [default: a free port of the address by which the broker is reached]
    #[arg(long, value_name = "IP:PORT", value_parser = values::listen)]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    connection: Connection,
}

impl Subscribe {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let queue = self.connection.open().await?.queue(&self.queue)?;
        let mut wanted = Subscription::new(self.name).from(self.from);
        wanted.topics = self.topics.into_iter().map(|topic| topic.into_vec().into()).collect();
        wanted.partitions = self.partitions.into_iter().map(|partition| (partition, None)).collect();
        let (sender, mut failed) = mpsc::channel(1);
        let listeners = Listeners::one(printer(self.connection.format, sender));
        let mut subscriber = queue.create_subscriber(wanted, listeners);
        if let Some(listen) = self.listen {
            subscriber = subscriber.listen(listen);
        }
        subscriber.start().await?;
        let (reason, ended) = tokio::select! {
            name = signals.next() => (name, Ok(())),
            Some(error) = failed.recv() => ("standard output failed", Err(Failure::from(error))),
        };
        signals.or_end(subscriber.stop(reason)).await;
        ended
    }
}

/// Prints each message at once. What could not be printed is not consumed; the first error is sent.
fn printer(format: Format, failed: mpsc::Sender<io::Error>) -> impl Fn(&Message) -> Result<(), &'static str> {
    move |message| {
        // Whoever reads may be slow: other tasks go on meanwhile.
        let printed = tokio::task::block_in_place(|| {
            let mut line = Vec::with_capacity(message.value.len() + 100);
            write_message(&mut line, format, message)?;
            let mut out = io::stdout().lock();
            out.write_all(&line)?;
            out.flush()
        });
        printed.map_err(|error| {
            // Later ones say nothing new.
            let _ = failed.try_send(error);
            "it could not be printed"
        })
    }
}
