//! `hqueue dlq`

use std::io::{self, BufWriter, Write};

use clap::{Args, ValueEnum};
use hqueue::{DeadLetter, HQueue, MessageId};

use crate::confirm::Confirm;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::{say, write_dead_letter};
use crate::progress;
use crate::values;

/// Read at once.
const BATCH: usize = 500;

/// Show the messages that a subscriber could not consume, push them to it again, or remove them.
///
/// `list` prints, oldest first: PARTITION, ID, ATTEMPTS, LAST ERROR, TOPIC, VALUE. `redrive` pushes dead letters to their subscriber and
/// removes those that it accepts. `drop` removes them for good.
#[derive(Args, Debug)]
pub(crate) struct Dlq {
    #[arg(value_enum)]
    action: Action,
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::subscriber)]
    subscriber: String,
    /// For redrive and drop: only these, by the ids that the list shows; without any: all.
    ids: Vec<MessageId>,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Print them, oldest first.
    List,
    /// Push them to their subscriber again; those that it accepts leave the list.
    Redrive,
    /// Remove them for good.
    Drop,
}

impl Dlq {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self.action {
            Action::List if !self.ids.is_empty() => {
                Err(Failure::Usage("list shows all dead letters, it takes no ids".to_owned()))
            }
            Action::List => self.list().await,
            Action::Redrive => self.redrive().await,
            Action::Drop => self.drop().await,
        }
    }

    async fn list(self) -> Result<(), Failure> {
        let hqueue = self.connection.open().await?;
        let mut letters = hqueue.queue(&self.queue)?.dead_letters(&self.subscriber).await?;
        let mut out = BufWriter::new(io::stdout().lock());
        let mut printed = 0;
        loop {
            let batch = letters.next_batch(BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for letter in &batch {
                write_dead_letter(&mut out, self.connection.format, letter)?;
            }
            printed += batch.len();
        }
        out.flush()?;
        drop(out);
        // Letters may be left of a subscriber that was deleted. One that has neither letters nor a place is a slip of the pen.
        if printed == 0 { self.check_subscriber(&hqueue).await } else { Ok(()) }
    }

    async fn check_subscriber(&self, hqueue: &HQueue) -> Result<(), Failure> {
        let Self { queue, subscriber, .. } = self;
        let there = hqueue.admin().list_subscribers(queue).await?;
        if there.iter().any(|known| known.name == *subscriber) {
            return Ok(());
        }
        let names: Vec<&str> = there.iter().map(|known| known.name.as_str()).collect();
        let known = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        Err(Failure::failed(format!("queue {queue} has no subscriber {subscriber:?}, and no dead letters of one: {known}")))
    }

    fn what(&self) -> String {
        let Self { queue, subscriber, ids, .. } = self;
        match ids.len() {
            0 => format!("all dead letters of subscriber {subscriber} of queue {queue}"),
            n => format!("{n} dead letters of subscriber {subscriber} of queue {queue}"),
        }
    }

    async fn redrive(self) -> Result<(), Failure> {
        self.confirm.ask(&format!("pushes {} to it again", self.what()))?;
        let hqueue = self.connection.open().await?;
        let ids = self.resolved(&hqueue).await?;
        let admin = hqueue.admin();
        let bar = progress::messages((!ids.is_empty()).then_some(ids.len() as u64), "accepted");
        let mut accepted = 0;
        loop {
            let done = admin.redrive_dead_letters(&self.queue, &self.subscriber, &ids).await?;
            accepted += done.accepted;
            bar.set_position(u64::from(accepted));
            if done.error.is_some() || !done.more {
                bar.finish_and_clear();
            }
            if let Some(error) = done.error {
                return Err(Failure::failed(format!("{accepted} accepted, then: {error}")));
            }
            if !done.more {
                say(format_args!("{accepted} accepted"));
                return Ok(());
            }
        }
    }

    async fn drop(self) -> Result<(), Failure> {
        self.confirm.ask(&format!("removes {}", self.what()))?;
        let hqueue = self.connection.open().await?;
        let ids = self.resolved(&hqueue).await?;
        let dropped = hqueue.admin().drop_dead_letters(&self.queue, &self.subscriber, &ids).await?;
        say(format_args!("{dropped} removed"));
        Ok(())
    }

    /// An id names the letters of all partitions that have it; one that no letter has is refused before anything is done.
    async fn resolved(&self, hqueue: &HQueue) -> Result<Vec<(i16, MessageId)>, Failure> {
        if self.ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut letters = hqueue.queue(&self.queue)?.dead_letters(&self.subscriber).await?;
        let mut found: Vec<(i16, MessageId)> = Vec::new();
        loop {
            let batch = letters.next_batch(BATCH).await?;
            if batch.is_empty() {
                break;
            }
            let named = batch.iter().filter(|letter: &&DeadLetter| self.ids.contains(&letter.message.id));
            found.extend(named.map(<(i16, MessageId)>::from));
        }
        match self.ids.iter().find(|id| !found.iter().any(|(_, at)| at == *id)) {
            Some(id) => Err(Failure::failed(format!(
                "subscriber {} of queue {} has no dead letter {id}: nothing was done",
                self.subscriber, self.queue
            ))),
            None => Ok(found),
        }
    }
}
