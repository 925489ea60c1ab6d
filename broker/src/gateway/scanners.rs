//! The open scanners of all clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hqueue_protocol::client::RpcClient;
use hqueue_protocol::generated::{TErrorCode, TMessageID, TMessageScan, TScanReport};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use tokio::time::Instant;

use crate::catalog::Queue;
use crate::partition::MessageScanner;
use crate::refusal::Refusal;
use crate::subscription::TaskScope;

/// A scanner that was not used for so long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// At most so many at once in one broker.
const MAX_SCANNERS: usize = 10_000;
/// Most bytes of a reply, unless a single message is larger.
const REPLY_BYTES: usize = 8 * 1024 * 1024;

/// A scanner at another broker.
#[derive(Clone, Debug)]
pub(super) struct RemoteScanner {
    pub(super) peer: RpcClient,
    pub(super) address: String,
    /// Its number there.
    pub(super) id: i32,
}

#[derive(Debug)]
enum Place {
    Here(Arc<tokio::sync::Mutex<MessageScanner>>),
    There(RemoteScanner),
}

#[derive(Debug)]
struct OpenScanner {
    scanner: Place,
    last_used: Instant,
}

/// Scanners by id.
#[derive(Debug)]
pub(super) struct Scanners {
    open: Mutex<Open>,
    scope: TaskScope,
}

#[derive(Debug, Default)]
struct Open {
    by_id: HashMap<i32, OpenScanner>,
    /// The task that closes idle scanners runs.
    watched: bool,
}

impl Scanners {
    pub(super) fn new(scope: TaskScope) -> Self {
        Self { open: Mutex::default(), scope }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a scanner on one partition.
    pub(super) fn open(self: &Arc<Self>, queue: &Queue, partition: i16, scan: TMessageScan) -> Result<i32, Refusal> {
        queue.check_partition(partition)?;
        let filter = queue.filter(scan.topics.unwrap_or_default());
        let from = scan.start_i_d.map_or(Ok(MessageId::MIN), |id| read_id(&id))?;
        let stop = scan.stop_i_d.map_or(Ok(MessageId::MAX), |id| read_id(&id))?;
        let scanner = MessageScanner::new(Arc::clone(&queue.store), partition, filter, from, stop);
        self.keep(Place::Here(Arc::new(tokio::sync::Mutex::new(scanner))))
    }

    /// Knows a scanner of another broker by a number of ours.
    pub(super) fn open_remote(self: &Arc<Self>, remote: RemoteScanner) -> Result<i32, Refusal> {
        self.keep(Place::There(remote))
    }

    fn keep(self: &Arc<Self>, scanner: Place) -> Result<i32, Refusal> {
        let mut open = self.lock();
        if open.by_id.len() >= MAX_SCANNERS {
            return Err(Refusal::new(TErrorCode::TOO_LARGE, format!("{MAX_SCANNERS} open scanners are the limit of a broker")));
        }
        let mut id = fastrand::i32(1..);
        while open.by_id.contains_key(&id) {
            id = fastrand::i32(1..);
        }
        open.by_id.insert(id, OpenScanner { scanner, last_used: Instant::now() });
        if !std::mem::replace(&mut open.watched, true) {
            self.watch();
        }
        Ok(id)
    }

    /// Where the scanner is, if at another broker.
    pub(super) fn remote(&self, id: i32) -> Result<Option<RemoteScanner>, Refusal> {
        let mut open = self.lock();
        let found = open.by_id.get_mut(&id).ok_or_else(|| no_scanner(id))?;
        found.last_used = Instant::now();
        match &found.scanner {
            Place::Here(_) => Ok(None),
            Place::There(remote) => Ok(Some(remote.clone())),
        }
    }

    /// The next messages: at most so many and 8 MiB. Empty: the end, for now.
    pub(super) async fn next(&self, id: i32, messages: i32) -> Result<Vec<StoredSlice>, Refusal> {
        let messages = u32::try_from(messages)
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| Refusal::invalid(format!("{messages} messages: ask for 1 or more")))?;
        let scanner = self.here(id)?;
        let mut scanner = scanner.lock().await;
        scanner.fill_cold(messages, REPLY_BYTES).await?;
        Ok(scanner.take(messages, REPLY_BYTES)?)
    }

    /// What it has passed over since it was opened.
    pub(super) async fn report(&self, id: i32) -> Result<TScanReport, Refusal> {
        let scanner = self.here(id)?;
        let missing = scanner.lock().await.missing();
        let count = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
        Ok(TScanReport { expired: count(missing.expired), damaged: count(missing.damaged) })
    }

    fn here(&self, id: i32) -> Result<Arc<tokio::sync::Mutex<MessageScanner>>, Refusal> {
        let mut open = self.lock();
        let found = open.by_id.get_mut(&id).ok_or_else(|| no_scanner(id))?;
        found.last_used = Instant::now();
        match &found.scanner {
            Place::Here(scanner) => Ok(Arc::clone(scanner)),
            Place::There(_) => Err(no_scanner(id)),
        }
    }

    /// Closes a scanner. Returns it if it is at another broker, where it has to be closed, too.
    pub(super) fn close(&self, id: i32) -> Result<Option<RemoteScanner>, Refusal> {
        match self.lock().by_id.remove(&id).ok_or_else(|| no_scanner(id))?.scanner {
            Place::Here(_) => Ok(None),
            Place::There(remote) => Ok(Some(remote)),
        }
    }

    /// One task closes what is idle; it runs while any is open.
    fn watch(self: &Arc<Self>) {
        let scanners = Arc::clone(self);
        self.scope.spawn(async move {
            while let Some(next) = scanners.close_idle() {
                tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = scanners.scope.stop.cancelled() => return,
                }
            }
        });
    }

    /// Returns when the next one may be due, `None` when none is open.
    fn close_idle(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut open = self.lock();
        open.by_id.retain(|_, s| s.last_used + IDLE_LIMIT > now);
        let next = open.by_id.values().map(|s| s.last_used + IDLE_LIMIT).min();
        open.watched = next.is_some();
        next
    }
}

fn no_scanner(id: i32) -> Refusal {
    Refusal::not_found(format!("there is no scanner {id}: a scanner is closed after {} s without use", IDLE_LIMIT.as_secs()))
}

pub(super) fn read_id(id: &TMessageID) -> Result<MessageId, Refusal> {
    match (id.timestamp, id.sequence_i_d) {
        (Some(timestamp), Some(sequence)) if timestamp >= 0 && sequence >= 0 => Ok(MessageId::new(timestamp, sequence)),
        (timestamp, sequence) => {
            Err(Refusal::invalid(format!("{}:{} is no message id", timestamp.unwrap_or_default(), sequence.unwrap_or_default())))
        }
    }
}
