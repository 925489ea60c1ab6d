//! `hqueue put`

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use hqueue::{Error, NewMessage, PendingPut, Producer, ProducerOptions, Target};
use hqueue_protocol::limits::MAX_REQUEST_BYTES;
use indicatif::ProgressBar;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::key_value;
use crate::connection::{Connection, Format};
use crate::failure::Failure;
use crate::input::read_lines;
use crate::output::write_placed;
use crate::progress;
use crate::shell::Session;
use crate::values;

/// Messages that were handed over and whose line was not printed yet.
const WAITING: usize = 20_000;

/// Put messages; print the partition and the id of each, in order.
///
/// Values stand on the command line, or are the lines of a file (--file) or of standard input (-). An empty line is an empty value.
/// Values that begin with a dash stand behind --.
#[derive(Args, Debug)]
pub(crate) struct Put {
    #[arg(value_parser = values::queue)]
    queue: String,
    /// 1 to 255 bytes.
    #[arg(long, value_name = "T", value_parser = values::topic())]
    topic: OsString,
    /// Put into this partition [default: a random one]
    #[arg(long, value_name = "N", value_parser = values::partition)]
    partition: Option<i16>,
    /// Put into the partition of this key: messages of one key stay in order.
    #[arg(long, value_name = "K", conflicts_with = "partition")]
    key: Option<OsString>,
    /// A header of every message; may be given several times.
    #[arg(long = "header", value_name = "K=V", value_parser = key_value)]
    headers: Vec<(String, String)>,
    /// Put each line of this file.
    #[arg(long, value_name = "F", conflicts_with_all = ["values", "literal"])]
    file: Option<PathBuf>,
    /// Put all of the file, or of standard input, as one message.
    #[arg(long)]
    whole: bool,
    /// A value of a message, or - for the lines of standard input.
    #[arg(value_name = "VALUE")]
    values: Vec<OsString>,
    /// Values, whatever they begin with.
    #[arg(last = true, value_name = "VALUE")]
    literal: Vec<OsString>,
    #[command(flatten)]
    connection: Connection,
}

/// Where values come from.
enum Source {
    Given(Vec<Bytes>),
    Reader(Box<dyn Read + Send>, ProgressBar),
}

impl Put {
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let source = self.source()?;
        let blank = self.blank()?;
        let queue = self.connection.open().await?.queue(&self.queue)?;
        let target = match (self.partition, self.key.take()) {
            (Some(partition), _) => Target::Partition(partition),
            (None, Some(key)) => Target::Key(key.into_vec().into()),
            (None, None) => Target::Any,
        };
        let producer = queue.producer(ProducerOptions::default())?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let bar = match &source {
            Source::Reader(_, bar) => bar.clone(),
            Source::Given(_) => ProgressBar::hidden(),
        };
        let failed = CancellationToken::new();
        let feeder = Feeder { producer: &producer, target, blank, sender, failed: failed.clone() };
        let printer = Printer { format: self.connection.format, bar: bar.clone(), failed };
        let (fed, printed) = tokio::join!(feeder.feed(source, self.whole), printer.print(receiver));
        bar.finish_and_clear();
        printed.and(fed)?;
        Ok(producer.close().await?)
    }

    /// A message without its value.
    fn blank(&mut self) -> Result<NewMessage, Failure> {
        let mut blank = NewMessage::new(std::mem::take(&mut self.topic).into_vec(), Bytes::new());
        for (name, value) in self.headers.drain(..) {
            if blank.headers.iter().any(|(known, _)| *known == name) {
                return Err(Failure::Usage(format!("--header {name} is given twice")));
            }
            blank = blank.header(name, value);
        }
        Ok(blank)
    }

    fn source(&mut self) -> Result<Source, Failure> {
        if let Some(path) = &self.file {
            let (file, bytes) = open(path)?;
            return Ok(Source::Reader(Box::new(file), progress::bytes(Some(bytes))));
        }
        if self.values == ["-"] && self.literal.is_empty() {
            if Session::current().is_some_and(|session| session.reads_commands()) {
                return Err(Failure::Usage(
                    "standard input holds the shell's commands; lines of a file come with --file F".to_owned(),
                ));
            }
            let bar = if io::stdin().is_terminal() { ProgressBar::hidden() } else { progress::bytes(None) };
            return Ok(Source::Reader(Box::new(io::stdin()), bar));
        }
        if self.whole {
            return Err(Failure::Usage("--whole goes with --file or -".to_owned()));
        }
        if self.values.iter().any(|value| value == "-") {
            return Err(Failure::Usage("- (standard input) stands alone; a value that is a dash stands behind --".to_owned()));
        }
        let values: Vec<Bytes> =
            self.values.drain(..).chain(self.literal.drain(..)).map(|value| value.into_vec().into()).collect();
        if values.is_empty() {
            return Err(Failure::Usage("there is nothing to put: give a VALUE, --file F, or - for standard input".to_owned()));
        }
        Ok(Source::Given(values))
    }
}

fn open(path: &Path) -> Result<(File, u64), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::failed(format!("{} is a folder", path.display())));
    }
    Ok((file, metadata.len()))
}

/// Hands values over to the producer, in order.
struct Feeder<'a> {
    producer: &'a Producer,
    target: Target,
    blank: NewMessage,
    sender: mpsc::Sender<PendingPut>,
    /// Something could not be put: no more of it.
    failed: CancellationToken,
}

impl Feeder<'_> {
    async fn feed(self, source: Source, whole: bool) -> Result<(), Failure> {
        match source {
            Source::Given(values) => {
                for value in values {
                    self.put(value).await?;
                }
            }
            Source::Reader(reader, _) if whole => self.put(read_whole(reader).await?).await?,
            Source::Reader(reader, bar) => {
                let (mut lines, reading) = read_lines(reader, MAX_REQUEST_BYTES);
                while let Some(Some(some)) = self.failed.run_until_cancelled(lines.recv()).await {
                    for line in some.map_err(Failure::failed)? {
                        bar.inc(line.len() as u64 + 1);
                        self.put(line).await?;
                    }
                }
                // It ends with its channel, or waits for a line that nobody wants any more.
                reading.abort();
            }
        }
        Ok(())
    }

    async fn put(&self, value: Bytes) -> Result<(), Failure> {
        let message = NewMessage { value, ..self.blank.clone() };
        let pending = self.producer.enqueue(self.target.clone(), message).await?;
        // The printer takes everything until this end is gone.
        let _ = self.sender.send(pending).await;
        Ok(())
    }
}

async fn read_whole(reader: Box<dyn Read + Send>) -> Result<Bytes, Failure> {
    let read = tokio::task::spawn_blocking(move || {
        let mut all = Vec::new();
        reader.take(MAX_REQUEST_BYTES as u64 + 1).read_to_end(&mut all).map(|_| all)
    });
    let all = read.await.map_err(Failure::failed)?.map_err(Failure::failed)?;
    if all.len() > MAX_REQUEST_BYTES {
        return Err(Failure::failed(format!("a message of more than {MAX_REQUEST_BYTES} bytes is too large")));
    }
    Ok(all.into())
}

/// Prints where messages went, in order.
struct Printer {
    format: Format,
    bar: ProgressBar,
    failed: CancellationToken,
}

impl Printer {
    async fn print(self, mut receiver: mpsc::Receiver<PendingPut>) -> Result<(), Failure> {
        let mut out = Some(BufWriter::with_capacity(64 * 1024, io::stdout()));
        let mut first_error: Option<(usize, Error)> = None;
        let (mut number, mut lost) = (0, 0);
        while let Some(pending) = self.receive(&mut receiver, &mut out).await {
            number += 1;
            if !pending.is_settled() {
                self.flush(&mut out);
            }
            match pending.placed().await {
                Ok(placed) => {
                    let written = out.as_mut().map_or(Ok(()), |out| write_placed(out, self.format, placed));
                    if written.is_err() {
                        out = None;
                    }
                }
                Err(error) => {
                    self.failed.cancel();
                    first_error.get_or_insert((number, error));
                    lost += 1;
                }
            }
        }
        self.flush(&mut out);
        match first_error {
            None => Ok(()),
            Some((_, error)) if number == 1 => Err(error.into()),
            Some((first, error)) => {
                let unknown = if error.may_have_been_carried_out() { "are not known to be put" } else { "were not put" };
                Err(Failure::failed(format!("message {first}: {error}\n{lost} of the first {number} messages {unknown}")))
            }
        }
    }

    /// The next one. What is buffered is printed before it is waited for.
    async fn receive(
        &self,
        receiver: &mut mpsc::Receiver<PendingPut>,
        out: &mut Option<BufWriter<io::Stdout>>,
    ) -> Option<PendingPut> {
        if let Ok(pending) = receiver.try_recv() {
            return Some(pending);
        }
        self.flush(out);
        receiver.recv().await
    }

    /// When nobody reads any more, the messages are put all the same.
    fn flush(&self, out: &mut Option<BufWriter<io::Stdout>>) {
        let Some(writer) = out.as_mut().filter(|writer| !writer.buffer().is_empty()) else { return };
        if self.bar.suspend(|| writer.flush()).is_err() {
            *out = None;
        }
    }
}
