//! Dead letters that get another chance, or are dropped.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::{TDeadLetterID, TErrorCode, TMessage, TRedriven};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::rpc::{Redeliver, RedeliverArgs};
use hqueue_protocol::stored::PutBatch;

use super::story::{self, Content, Key};
use crate::catalog::{Catalog, Queue, Route, of_peer};
use crate::partition::MessageScanner;
use crate::refusal::Refusal;
use crate::subscription::Unaccepted;

/// A redrive returns after this time, or so many letters, to be called again.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// So many letters of one partition are pushed in a call, and so many bytes, unless a single one is larger.
const BATCH: usize = 100;
const BATCH_BYTES: usize = 1 << 20;
/// After so many in a row that fail alone a redrive ends: it is not the messages' fault.
const MAX_FAILED_IN_A_ROW: u32 = 10;
/// So many are read at once.
const READ_MESSAGES: u32 = 1_000;
const READ_BYTES: usize = 4 << 20;

type Letter = (Key, TMessage);

impl Catalog {
    /// Pushes letters of a dead-letter queue that is ours to their subscriber, oldest first, and removes those that it accepts.
    pub async fn redrive(
        &self,
        letters: &Arc<Queue>,
        queue: &str,
        subscriber: &str,
        ids: &[TDeadLetterID],
    ) -> Result<TRedriven, Refusal> {
        let began = Instant::now();
        let wanted = wanted(ids)?;
        let mut run = Run::default();
        let mut scanner = self.letters_of(letters, subscriber);
        loop {
            let found = next_letters(&mut scanner, subscriber, wanted.as_ref()).await?;
            if found.is_empty() {
                return Ok(run.end(false));
            }
            let mut rest = found.as_slice();
            while !rest.is_empty() {
                if began.elapsed() > TIME_LIMIT {
                    return Ok(run.end(true));
                }
                let batch = run.next_batch(rest);
                let done = self.redeliver(queue, subscriber, batch).await;
                let k = done.as_ref().map_or(0, |k| *k);
                let gone: Vec<Key> = batch.iter().take(k).map(|(key, _)| key.clone()).collect();
                self.remove_letters(letters, &gone).await?;
                match run.after(batch.len(), done) {
                    Some(passed) => rest = rest.get(passed..).unwrap_or_default(),
                    None => return Ok(run.end(false)),
                }
            }
        }
    }

    /// Pushes letters of one partition where that is; returns how many were accepted.
    async fn redeliver(&self, queue: &str, subscriber: &str, letters: &[Letter]) -> Result<usize, Refusal> {
        let of = self.find(queue.as_bytes()).await?;
        let Some((first, _)) = letters.first() else { return Ok(0) };
        let messages: Vec<TMessage> = letters.iter().map(|(key, letter)| story::original(letter.clone(), key)).collect();
        let accepted = match self.route(&of, first.partition) {
            Route::Here => self.redeliver_here(&of, subscriber, first.partition, &messages).await?,
            Route::Offline(reason) => return Err(Refusal::new(TErrorCode::OFFLINE, reason)),
            Route::At(address) => {
                let args = RedeliverArgs {
                    queue_name: queue.as_bytes().to_vec(),
                    subscriber: subscriber.as_bytes().to_vec(),
                    partition: first.partition,
                    messages,
                };
                self.peer(&address)?.call_owner::<Redeliver>(&args).await.map_err(|error| of_peer(&address, error))?
            }
        };
        Ok(usize::try_from(accepted).unwrap_or_default().min(letters.len()))
    }

    /// Pushes messages to a subscriber of a partition that is ours, once. Returns how many it accepted.
    pub async fn redeliver_here(
        &self,
        queue: &Arc<Queue>,
        subscriber: &str,
        partition: i16,
        messages: &[TMessage],
    ) -> Result<i32, Refusal> {
        let subscription = queue.subscription(subscriber)?;
        let Some(worker) = subscription.worker(partition) else {
            return Err(Refusal::not_found(format!("subscriber {subscriber} does not read partition {partition}")));
        };
        let mut batch = PutBatch::with_capacity(messages.len(), 0);
        let mut ids = Vec::with_capacity(messages.len());
        for message in messages {
            let id = message.id.as_ref().and_then(|id| Some(MessageId::new(id.timestamp?, id.sequence_i_d?)));
            ids.push(id.ok_or_else(|| Refusal::invalid("a message without an id cannot be redelivered"))?);
            story::encode(message, &mut batch).map_err(Refusal::invalid)?;
        }
        let mut ids = ids.into_iter();
        let Some(slice) = batch.seal(partition, || ids.next().unwrap_or(MessageId::MAX)) else { return Ok(0) };
        let accepted = worker.redeliver(slice).await.map_err(|why| match why {
            Unaccepted::Failed(reason) => Refusal::new(TErrorCode::FAILED, reason),
            Unaccepted::Untried(reason) => Refusal::new(TErrorCode::WRONG_STATE, reason),
        })?;
        Ok(i32::try_from(accepted).unwrap_or(i32::MAX))
    }

    /// Removes letters of a dead-letter queue that is ours; returns how many.
    pub async fn drop_letters(&self, letters: &Arc<Queue>, subscriber: &str, ids: &[TDeadLetterID]) -> Result<i32, Refusal> {
        let wanted = wanted(ids)?;
        let mut scanner = self.letters_of(letters, subscriber);
        let mut dropped = 0;
        loop {
            let found = next_letters(&mut scanner, subscriber, wanted.as_ref()).await?;
            if found.is_empty() {
                return Ok(dropped);
            }
            let keys: Vec<Key> = found.into_iter().map(|(key, _)| key).collect();
            self.remove_letters(letters, &keys).await?;
            dropped = dropped.saturating_add(i32::try_from(keys.len()).unwrap_or(i32::MAX));
        }
    }

    fn letters_of(&self, letters: &Arc<Queue>, subscriber: &str) -> MessageScanner {
        let filter = letters.filter(vec![subscriber.as_bytes().to_vec()]);
        // What is dead-lettered meanwhile has its own turn later.
        let end = letters.store.committed(0).ok().and_then(|c| c.last).map_or(MessageId::MIN, MessageId::successor);
        MessageScanner::new(Arc::clone(&letters.store), 0, filter, MessageId::MIN, end)
    }
}

/// A redrive under way. Letters go in batches; when one fails its letters go one by one, so that one that is still poison is not in the
/// way of the others.
#[derive(Debug, Default)]
struct Run {
    accepted: i32,
    /// So many go one by one.
    single: usize,
    failed_in_a_row: u32,
    error: Option<String>,
}

impl Run {
    /// The next letters of one partition.
    fn next_batch<'a>(&self, rest: &'a [Letter]) -> &'a [Letter] {
        let first = rest.first().map(|(key, _)| key.partition);
        let mut bytes = 0;
        let fits = |(key, letter): &&Letter| {
            bytes += size(letter);
            Some(key.partition) == first && bytes <= BATCH_BYTES
        };
        let most = if self.single > 0 { 1 } else { BATCH };
        let count = rest.iter().take(most).take_while(fits).count().max(1);
        rest.get(..count).unwrap_or(rest)
    }

    /// What a batch came to. Returns how many letters are done with; `None`: it is no use to go on.
    fn after(&mut self, sent: usize, done: Result<usize, Refusal>) -> Option<usize> {
        match done {
            Ok(k) => {
                self.accepted = self.accepted.saturating_add(i32::try_from(k).unwrap_or(i32::MAX));
                self.single = self.single.saturating_sub(k);
                self.failed_in_a_row = 0;
                Some(k)
            }
            Err(refusal) if refusal.code == TErrorCode::FAILED && sent > 1 => {
                self.single = sent;
                Some(0)
            }
            // Its broker is away: letters of other partitions may go.
            Err(refusal) if refusal.code == TErrorCode::OFFLINE => {
                self.error.get_or_insert(refusal.message);
                self.single = self.single.saturating_sub(sent);
                Some(sent)
            }
            Err(refusal) => {
                let may_go_on = refusal.code == TErrorCode::FAILED;
                self.error.get_or_insert(refusal.message);
                self.single = self.single.saturating_sub(1);
                self.failed_in_a_row += 1;
                (may_go_on && self.failed_in_a_row < MAX_FAILED_IN_A_ROW).then_some(1)
            }
        }
    }

    /// `more`: there are some that had no turn. They are asked for again unless something failed: it would come first again.
    fn end(self, more: bool) -> TRedriven {
        TRedriven { accepted: Some(self.accepted), more: Some(more && self.error.is_none()), error: self.error }
    }
}

fn size(letter: &TMessage) -> usize {
    let headers: usize = letter.headers.iter().flatten().map(|(name, value)| name.len() + value.len()).sum();
    letter.value.as_ref().map_or(0, Vec::len) + headers
}

/// `None`: all.
fn wanted(ids: &[TDeadLetterID]) -> Result<Option<HashSet<(i16, MessageId)>>, Refusal> {
    if ids.is_empty() {
        return Ok(None);
    }
    let read = |id: &TDeadLetterID| {
        let at = id.id.as_ref()?;
        Some((id.partition?, MessageId::new(at.timestamp?, at.sequence_i_d?)))
    };
    let all: Option<HashSet<_>> = ids.iter().map(read).collect();
    all.map(Some).ok_or_else(|| Refusal::invalid("a dead letter is named by its partition and its id"))
}

/// The next letters that are wanted; empty at the end.
async fn next_letters(
    scanner: &mut MessageScanner,
    subscriber: &str,
    wanted: Option<&HashSet<(i16, MessageId)>>,
) -> Result<Vec<Letter>, Refusal> {
    loop {
        scanner.fill_cold(READ_MESSAGES, READ_BYTES).await?;
        let slices = scanner.take(READ_MESSAGES, READ_BYTES)?;
        if slices.is_empty() {
            return Ok(Vec::new());
        }
        let messages = slices.iter().flat_map(|slice| slice.messages()).flatten();
        let letters: Vec<Letter> = messages
            .filter_map(|message| {
                let decoded = story::decode(&message).ok()?;
                match story::content(&decoded) {
                    Content::Letter(key) if key.subscriber == subscriber.as_bytes() => Some((key, decoded)),
                    _ => None,
                }
            })
            .filter(|(key, _)| wanted.is_none_or(|wanted| wanted.contains(&(key.partition, key.id))))
            .collect();
        if !letters.is_empty() {
            return Ok(letters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(partitions: &[i16], bytes: usize) -> Vec<Letter> {
        let letter = |(n, partition): (usize, &i16)| {
            let id = MessageId::new(i64::try_from(n).unwrap(), 0);
            let message = TMessage { value: Some(vec![0; bytes]), ..Default::default() };
            (Key { subscriber: b"s".to_vec(), partition: *partition, id }, message)
        };
        partitions.iter().enumerate().map(letter).collect()
    }

    fn failed() -> Refusal {
        Refusal::new(TErrorCode::FAILED, "no")
    }

    #[test]
    fn a_batch_is_of_one_partition_and_small() {
        let run = Run::default();
        assert_eq!(run.next_batch(&letters(&[1, 1, 2], 10)).len(), 2);
        assert_eq!(run.next_batch(&letters(&[1; 500], 10)).len(), BATCH);
        assert_eq!(run.next_batch(&letters(&[1; 5], 400_000)).len(), 2);
        assert_eq!(run.next_batch(&letters(&[1; 5], 4 << 20)).len(), 1, "one that is larger goes alone");
    }

    /// Consumers that take all or nothing: what is not poison is accepted, in order, whatever else there is.
    #[test]
    fn poison_is_in_nobodys_way() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let all = letters(&(0..random.usize(1..300)).map(|_| random.i16(0..2)).collect::<Vec<_>>(), random.usize(0..50_000));
            let poison: HashSet<MessageId> = all.iter().map(|(key, _)| key.id).filter(|_| random.u8(0..30) == 0).collect();
            let (mut run, mut rest, mut accepted) = (Run::default(), all.as_slice(), Vec::new());
            while !rest.is_empty() {
                let batch = run.next_batch(rest);
                let done = if batch.iter().any(|(key, _)| poison.contains(&key.id)) { Err(failed()) } else { Ok(batch.len()) };
                if done.is_ok() {
                    accepted.extend(batch.iter().map(|(key, _)| key.id));
                }
                let Some(passed) = run.after(batch.len(), done) else { break };
                rest = &rest[passed..];
            }
            let wanted: Vec<MessageId> = all.iter().map(|(key, _)| key.id).filter(|id| !poison.contains(id)).collect();
            assert!(rest.is_empty() && accepted == wanted, "seed {seed}");
            let end = run.end(false);
            assert_eq!((end.accepted, end.error.is_some()), (Some(i32::try_from(wanted.len()).unwrap()), !poison.is_empty()));
        }
    }

    #[test]
    fn one_that_fails_at_everything_is_left_alone() {
        let all = letters(&[0; 100], 1);
        let (mut run, mut rest, mut calls) = (Run::default(), all.as_slice(), 0);
        while let Some(passed) = run.after(run.next_batch(rest).len(), Err(failed())) {
            rest = &rest[passed..];
            calls += 1;
        }
        assert_eq!(calls, MAX_FAILED_IN_A_ROW, "one batch and then so many alone");
        let busy = || Err(Refusal::new(TErrorCode::WRONG_STATE, "busy"));
        assert!(Run::default().after(5, busy()).is_none(), "nothing can be tried");
        assert_eq!(Run::default().after(5, Err(Refusal::new(TErrorCode::OFFLINE, "away"))), Some(5), "others can");
    }
}
