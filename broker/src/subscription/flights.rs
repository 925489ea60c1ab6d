//! The batches of a partition that are on their way, where order does not matter: what is sent, what waits for another try, what is done,
//! and up to where everything is.

use std::collections::BTreeMap;
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use tokio::time::Instant;

use super::policy::{self, Next, Trouble};

/// Batches in the order of their messages, by the id of the first. One that is done stays until everything before it is.
#[derive(Debug, Default)]
pub struct Flights {
    open: BTreeMap<MessageId, Flight>,
    messages: u32,
    bytes: usize,
}

#[derive(Debug)]
struct Flight {
    slices: Vec<StoredSlice>,
    messages: u32,
    bytes: usize,
    last: MessageId,
    attempts: u32,
    hunting: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// Again at this time.
    Waiting(Instant),
    /// Its one message becomes a dead letter.
    Burying,
    /// Its one message is in the way of the checkpoint until somebody says go on.
    Blocked,
    Done,
}

/// Where a message is that was read already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightPlace {
    InFlight,
    /// Its batch has failed so often, and is sent again after so long.
    Waiting {
        attempts: u32,
        wait: Duration,
    },
    Burying,
    Blocked {
        attempts: u32,
    },
    Done,
}

/// What a failed batch comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It is tried again, whole or in parts.
    Again,
    /// Its one message is poison, after so many attempts.
    Poison { message: StoredSlice, attempts: u32 },
}

impl Flights {
    /// Lets go of everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.open.values().filter(|flight| flight.state == State::InFlight).count()
    }

    /// Messages from the first that is not done to the last that was sent.
    #[must_use]
    pub const fn span(&self) -> u32 {
        self.messages
    }

    /// Bytes that are held for another try.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The attempts of the first batch that is not done, and its last id.
    #[must_use]
    pub fn first(&self) -> Option<(u32, MessageId)> {
        self.open.values().next().map(|flight| (flight.attempts, flight.last))
    }

    /// Where the message of this id is, if it was read.
    #[must_use]
    pub fn place(&self, id: MessageId, now: Instant) -> Option<FlightPlace> {
        let (_, flight) = self.open.range(..=id).next_back().filter(|(_, flight)| id <= flight.last)?;
        let attempts = flight.attempts;
        Some(match flight.state {
            State::InFlight => FlightPlace::InFlight,
            State::Waiting(at) => FlightPlace::Waiting { attempts, wait: at.saturating_duration_since(now) },
            State::Burying => FlightPlace::Burying,
            State::Blocked => FlightPlace::Blocked { attempts },
            State::Done => FlightPlace::Done,
        })
    }

    /// Failed attempts of a batch.
    #[must_use]
    pub fn attempts(&self, key: MessageId) -> u32 {
        self.open.get(&key).map_or(0, |flight| flight.attempts)
    }

    /// A message is in the way.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.open.values().any(|flight| flight.state == State::Blocked)
    }

    /// Takes the first batch whose wait is over.
    pub fn take_due(&mut self, now: Instant) -> Option<(MessageId, Vec<StoredSlice>)> {
        let due = |flight: &Flight| matches!(flight.state, State::Waiting(at) if at <= now);
        let (key, flight) = self.open.iter_mut().find(|(_, flight)| due(flight))?;
        flight.state = State::InFlight;
        Some((*key, flight.slices.clone()))
    }

    /// When the next wait is over.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let waits = self.open.values().filter_map(|flight| match flight.state {
            State::Waiting(at) => Some(at),
            _ => None,
        });
        waits.min()
    }

    /// Takes the oldest batch that waits, once its wait is over.
    pub fn take_oldest_due(&mut self, now: Instant) -> Option<(MessageId, Vec<StoredSlice>)> {
        let waits = |flight: &Flight| matches!(flight.state, State::Waiting(_));
        let (key, flight) = self.open.iter_mut().find(|(_, flight)| waits(flight))?;
        if !matches!(flight.state, State::Waiting(at) if at <= now) {
            return None;
        }
        flight.state = State::InFlight;
        Some((*key, flight.slices.clone()))
    }

    /// When the wait of the oldest batch that waits is over.
    #[must_use]
    pub fn oldest_due(&self) -> Option<Instant> {
        self.open.values().find_map(|flight| match flight.state {
            State::Waiting(at) => Some(at),
            _ => None,
        })
    }

    /// A batch is sent for the first time by this broker; it lies behind all that were. `before`: attempts before a restart, and whether
    /// the poison is being looked for. `None`: it is empty.
    pub fn start(&mut self, slices: Vec<StoredSlice>, before: (u32, bool)) -> Option<MessageId> {
        let key = slices.first()?.first;
        let (attempts, hunting) = before;
        self.insert(slices, attempts, hunting, State::InFlight);
        Some(key)
    }

    fn insert(&mut self, slices: Vec<StoredSlice>, attempts: u32, hunting: bool, state: State) {
        let (Some(first), Some(last)) = (slices.first().map(|s| s.first), slices.last().map(|s| s.last)) else { return };
        let messages = slices.iter().map(|slice| slice.count).sum();
        let bytes = slices.iter().map(|slice| slice.bytes.len()).sum();
        self.messages += messages;
        self.bytes += bytes;
        self.open.insert(first, Flight { slices, messages, bytes, last, attempts, hunting, state });
    }

    fn remove(&mut self, key: MessageId) -> Option<Flight> {
        let flight = self.open.remove(&key)?;
        self.messages -= flight.messages;
        self.bytes -= flight.bytes;
        Some(flight)
    }

    /// The first `k` messages of a batch are consumed; the rest is sent again at once.
    pub fn consumed(&mut self, key: MessageId, k: u32, now: Instant) {
        let Some(flight) = self.remove(key) else { return };
        let (done, rest) = split(flight.slices, k);
        let hunting = flight.hunting;
        self.insert(done, 0, false, State::Done);
        self.insert(rest, if hunting { flight.attempts } else { 0 }, hunting, State::Waiting(now));
    }

    /// The endpoint asks to come again later: no attempt.
    pub fn postponed(&mut self, key: MessageId, until: Instant) {
        if let Some(flight) = self.open.get_mut(&key) {
            flight.state = State::Waiting(until);
        }
    }

    /// A batch failed. `wait` is how long so many failures are waited for.
    pub fn failed(&mut self, key: MessageId, max_attempts: u32, now: Instant, wait: impl Fn(u32) -> Duration) -> Failed {
        let Some(mut flight) = self.remove(key) else { return Failed::Again };
        flight.attempts = flight.attempts.saturating_add(1);
        let Flight { attempts, hunting, messages, .. } = flight;
        match policy::after_failure(Trouble { attempts, max_attempts, messages, hunting }) {
            Next::Again { attempts } => {
                self.insert(flight.slices, attempts, hunting, State::Waiting(now + wait(attempts)));
                Failed::Again
            }
            Next::Hunt { messages } => {
                let (front, rest) = split(flight.slices, messages);
                self.insert(front, attempts, true, State::Waiting(now + wait(1)));
                self.insert(rest, attempts, true, State::Waiting(now + wait(1)));
                Failed::Again
            }
            Next::Poison => {
                let message = flight.slices.first().cloned();
                self.insert(flight.slices, attempts, true, State::Burying);
                message.map_or(Failed::Again, |message| Failed::Poison { message, attempts })
            }
        }
    }

    /// The first message of a batch is refused for good: returned to be buried; the rest is sent again at once.
    pub fn refused(&mut self, key: MessageId, now: Instant) -> Option<(StoredSlice, u32)> {
        let flight = self.remove(key)?;
        let (front, rest) = split(flight.slices, 1);
        let message = front.first().cloned();
        self.insert(front, flight.attempts, true, State::Burying);
        self.insert(rest, flight.attempts, flight.hunting, State::Waiting(now));
        message.map(|message| (message, flight.attempts.max(1)))
    }

    /// Poison is not buried: it waits, or is in the way.
    pub fn not_buried(&mut self, key: MessageId, again: Option<Instant>) {
        if let Some(flight) = self.open.get_mut(&key) {
            flight.state = again.map_or(State::Blocked, State::Waiting);
        }
    }

    /// Poison is a dead letter now.
    pub fn buried(&mut self, key: MessageId) {
        if let Some(flight) = self.open.get_mut(&key) {
            flight.state = State::Done;
        }
    }

    /// Another worker goes on with them. What waits, waits as long as it had to, but no longer than `most` for its attempts; what was in the
    /// way still is if `poison_blocks`.
    pub fn handed_over(&mut self, now: Instant, poison_blocks: bool, most: impl Fn(u32) -> Duration) {
        for flight in self.open.values_mut() {
            flight.state = match flight.state {
                State::Waiting(at) => State::Waiting(at.min(now + most(flight.attempts))),
                State::Blocked if !poison_blocks => State::Waiting(now),
                // Its call has ended, and nobody has heard of it.
                State::InFlight => State::Waiting(now),
                state => state,
            };
        }
    }

    /// Single messages that become dead letters: which, and after how many attempts.
    #[must_use]
    pub fn burying(&self) -> Vec<(MessageId, StoredSlice, u32)> {
        let burying = self.open.iter().filter(|(_, flight)| flight.state == State::Burying);
        burying.filter_map(|(key, flight)| Some((*key, flight.slices.first()?.clone(), flight.attempts.max(1)))).collect()
    }

    /// What is in the way is tried again, as if for the first time.
    pub fn resume(&mut self, now: Instant) {
        for flight in self.open.values_mut() {
            if matches!(flight.state, State::Blocked | State::Waiting(_)) {
                (flight.attempts, flight.hunting, flight.state) = (0, false, State::Waiting(now));
            }
        }
    }

    /// Forgets what is done from the front on; returns the last id of that.
    pub fn take_done(&mut self) -> Option<MessageId> {
        let mut last = None;
        while let Some((key, flight)) = self.open.first_key_value() {
            if flight.state != State::Done {
                break;
            }
            last = Some(flight.last);
            let key = *key;
            self.remove(key);
        }
        last
    }
}

/// The first `k` messages, and the others. What cannot be split stays together at the back: it was not consumed.
fn split(slices: Vec<StoredSlice>, k: u32) -> (Vec<StoredSlice>, Vec<StoredSlice>) {
    let (mut front, mut rest) = (Vec::new(), Vec::new());
    let mut left = k;
    for slice in slices {
        if left == 0 {
            rest.push(slice);
            continue;
        }
        match slice.clone().split_front(left, usize::MAX) {
            Ok((head, tail)) => {
                left -= head.count.min(left);
                front.push(head);
                rest.extend(tail);
            }
            Err(_) => {
                left = 0;
                rest.push(slice);
            }
        }
    }
    (front, rest)
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::stored::PutBatch;

    use super::*;

    fn slice(ids: std::ops::Range<i64>) -> Vec<StoredSlice> {
        let mut batch = PutBatch::default();
        ids.clone().for_each(|_| batch.push(b"t", b"v", &[]));
        let mut ids = ids.map(|ms| MessageId::new(ms, 0));
        batch.seal(0, || ids.next().unwrap()).into_iter().collect()
    }

    fn id(ms: i64) -> MessageId {
        MessageId::new(ms, 0)
    }

    #[test]
    fn the_checkpoint_is_the_end_of_the_unbroken_prefix() {
        let now = Instant::now();
        let mut flights = Flights::default();
        let first = flights.start(slice(1..4), (0, false)).unwrap();
        let second = flights.start(slice(4..6), (0, false)).unwrap();
        flights.consumed(second, 2, now);
        assert_eq!((flights.take_done(), flights.span()), (None, 5));
        flights.consumed(first, 2, now);
        assert_eq!(flights.take_done(), Some(id(2)));
        assert_eq!(flights.take_due(now).unwrap().0, id(3));
        flights.consumed(id(3), 1, now);
        assert_eq!((flights.take_done(), flights.is_empty(), flights.bytes()), (Some(id(5)), true, 0));
    }

    /// Random consumers, random order of answers: everything is done or buried, once, and the prefix never passes what is not.
    #[test]
    fn everything_is_done_or_buried() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let mut now = Instant::now();
            let total = random.i64(1..60);
            let poison: Vec<i64> = (0..random.usize(0..4)).map(|_| random.i64(0..total)).collect();
            let mut flights = Flights::default();
            let mut sent: Vec<(MessageId, Vec<StoredSlice>)> = Vec::new();
            let (mut next, mut finished, mut buried, mut prefix) =
                (0, vec![false; usize::try_from(total).unwrap()], Vec::new(), None);
            for step in 0.. {
                assert!(step < 100_000, "seed {seed}: it does not end");
                now += Duration::from_millis(random.u64(0..50));
                if sent.len() < 4
                    && let Some(due) = flights.take_due(now)
                {
                    sent.push(due);
                } else if sent.len() < 4 && next < total {
                    let end = (next + random.i64(1..8)).min(total);
                    let slices = slice(next..end);
                    let key = flights.start(slices.clone(), (0, false)).unwrap();
                    sent.push((key, slices));
                    next = end;
                }
                if sent.is_empty() {
                    if next >= total && flights.is_empty() {
                        break;
                    }
                    now = flights.next_due().unwrap_or(now);
                    continue;
                }
                let (key, slices) = sent.swap_remove(random.usize(0..sent.len()));
                let ids: Vec<i64> = slices.iter().flat_map(|s| s.messages()).map(|m| m.unwrap().id.timestamp).collect();
                let good = ids.iter().take_while(|id| !poison.contains(id)).count();
                match random.u8(0..10) {
                    0 => flights.postponed(key, now + Duration::from_millis(5)),
                    1..6 if good > 0 => {
                        let k = random.usize(1..=good);
                        ids.iter().take(k).for_each(|id| finished[usize::try_from(*id).unwrap()] = true);
                        flights.consumed(key, u32::try_from(k).unwrap(), now);
                    }
                    _ if good == ids.len() => {
                        ids.iter().for_each(|id| finished[usize::try_from(*id).unwrap()] = true);
                        flights.consumed(key, u32::try_from(good).unwrap(), now);
                    }
                    _ => {
                        if let Failed::Poison { message, .. } = flights.failed(key, 3, now, |_| Duration::from_millis(1)) {
                            assert!(poison.contains(&message.first.timestamp), "seed {seed}: {message:?} is no poison");
                            buried.push(message.first.timestamp);
                            finished[usize::try_from(message.first.timestamp).unwrap()] = true;
                            flights.buried(key);
                        }
                    }
                }
                if let Some(to) = flights.take_done() {
                    assert!(prefix < Some(to), "seed {seed}: the prefix goes back");
                    prefix = Some(to);
                    let unfinished = finished.iter().position(|done| !done);
                    assert!(
                        unfinished.is_none_or(|at| to < id(i64::try_from(at).unwrap())),
                        "seed {seed}: {at:?} passed",
                        at = unfinished
                    );
                }
            }
            assert!(finished.iter().all(|done| *done), "seed {seed}");
            let mut wanted = poison;
            wanted.sort_unstable();
            wanted.dedup();
            buried.sort_unstable();
            assert_eq!(buried, wanted, "seed {seed}");
        }
    }
}
