//! What a simulated subscription is made of: a partition's messages and their fates, the consumer, the checkpoint's nodes and the dead
//! letters; and what must hold, checked at every step.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hqueue_coordination::{BoxFuture, CoordinationError, Coordinator, Created, Node, NodeKind, Observed, SessionState};
use hqueue_protocol::endpoint::CallError;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use hqueue_storage::clock::Clock;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::subscription::{Checkpoint, DeadLetter, DeadLetterBox};

/// How a consumer does not consume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    MinusOne,
    Exception,
    /// Its process ends, with all of its calls, and is away for a moment.
    Dies,
    Hangs,
}

/// What becomes of a message at its consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Good,
    Poison(Failure),
    /// -3
    Refused,
    /// Fails so many times.
    Flaky(u32, Failure),
}

/// What is wrong with the consumer as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    Down,
    Hangs,
    FailsAll,
    Busy,
}

/// A message by its place.
pub(super) type Place = (i16, MessageId);

#[derive(Debug)]
pub(super) struct State {
    pub(super) random: fastrand::Rng,
    pub(super) fates: BTreeMap<Place, Fate>,
    pub(super) trouble: Trouble,
    /// The consumer's process is away until then.
    away_until: Instant,
    pub(super) accepted: HashMap<Place, u32>,
    pub(super) letters: HashSet<Place>,
    /// Failed alone in a call, and not because another ended the process.
    blamed: HashSet<Place>,
    pub(super) nodes: HashMap<String, (Vec<u8>, i32)>,
    /// So often a checkpoint may fall in a partition: it was moved back by somebody.
    pub(super) may_fall: HashMap<i16, u32>,
    /// Everything before it is finished.
    finished_to: HashMap<i16, MessageId>,
    pub(super) calls: u64,
    pub(super) empty_calls: u64,
    pub(super) violations: Vec<String>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) state: Mutex<State>,
    pub(super) ordered: bool,
    pub(super) call_timeout: Duration,
    /// Nothing but the consumer makes trouble.
    pub(super) calm: bool,
    /// Rises when the consumer's process ends.
    deaths: watch::Sender<u64>,
    ticks: AtomicI64,
}

impl World {
    pub(super) fn new(seed: u64, ordered: bool, calm: bool, call_timeout: Duration) -> Self {
        let state = State {
            random: fastrand::Rng::with_seed(seed),
            fates: BTreeMap::new(),
            trouble: Trouble::None,
            away_until: Instant::now(),
            accepted: HashMap::new(),
            letters: HashSet::new(),
            blamed: HashSet::new(),
            nodes: HashMap::new(),
            may_fall: HashMap::new(),
            finished_to: HashMap::new(),
            calls: 0,
            empty_calls: 0,
            violations: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            ordered,
            call_timeout,
            calm,
            deaths: watch::Sender::new(0),
            ticks: AtomicI64::new(1_000_000),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    pub(super) fn is_finished(&self, place: &Place) -> bool {
        self.accepted.contains_key(place) || self.letters.contains(place)
    }

    fn first_unfinished(&mut self, partition: i16) -> Option<MessageId> {
        // What is finished stays so: the search goes on where it ended.
        let from = self.finished_to.get(&partition).copied().unwrap_or(MessageId::MIN);
        let of = self.fates.range((partition, from)..=(partition, MessageId::MAX));
        let found = of.map(|(place, _)| place).find(|place| !self.is_finished(place)).map(|(_, id)| *id);
        self.finished_to.insert(partition, found.unwrap_or(from));
        found
    }

    /// Somebody else has consumed it all.
    pub(super) fn accept_all(&mut self) {
        self.accepted = self.fates.keys().map(|place| (*place, 1)).collect();
    }

    fn note(&mut self, what: String) {
        if self.violations.len() < 10 {
            self.violations.push(what);
        }
    }

    fn accept(&mut self, places: &[Place], ordered: bool) {
        for place in places {
            if ordered
                && let Some(first) = self.first_unfinished(place.0)
                && first < place.1
            {
                self.note(format!("{place:?} was delivered before {first}"));
            }
            *self.accepted.entry(*place).or_default() += 1;
        }
    }

    /// The first message that fails now, and how; `None` as failure: it is refused.
    fn meets(&mut self, places: &[Place]) -> Option<(usize, Option<Failure>)> {
        for (at, place) in places.iter().enumerate() {
            match self.fates.get_mut(place) {
                None | Some(Fate::Good | Fate::Flaky(0, _)) => {}
                Some(Fate::Poison(failure)) => return Some((at, Some(*failure))),
                Some(Fate::Refused) => return Some((at, None)),
                Some(Fate::Flaky(left, failure)) => {
                    *left -= 1;
                    return Some((at, Some(*failure)));
                }
            }
        }
        None
    }
}

/// The wall clock: each look is a millisecond later.
#[derive(Debug)]
pub(super) struct Ticks(pub(super) Arc<World>);

impl Clock for Ticks {
    fn now_ms(&self) -> i64 {
        self.0.ticks.fetch_add(1, Ordering::Relaxed)
    }

    fn monotonic_ms(&self) -> i64 {
        self.0.ticks.load(Ordering::Relaxed)
    }
}

/// What one broker, from its start to its end, has to do with the world.
#[derive(Clone, Debug)]
pub(super) struct Incarnation {
    pub(super) world: Arc<World>,
    pub(super) lives: Arc<AtomicBool>,
    session: watch::Receiver<SessionState>,
}

impl Incarnation {
    pub(super) fn new(world: &Arc<World>) -> Self {
        let session = watch::Sender::new(SessionState::Held { id: 1, lease_until: None }).subscribe();
        Self { world: Arc::clone(world), lives: Arc::new(AtomicBool::new(true)), session }
    }

    /// Nothing comes from a broker that was killed.
    async fn alive(&self) {
        if !self.lives.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Something takes its time; true: it fails.
    async fn delay(&self) -> bool {
        let (wait, fails) = {
            let random = &mut self.world.lock().random;
            (random.u64(0..20), !self.world.calm && random.u8(0..10) == 0)
        };
        sleep(Duration::from_millis(wait)).await;
        self.alive().await;
        fails
    }
}

/// A connection to the consumer.
#[derive(Debug)]
pub(in crate::subscription) struct SimulatedCaller(pub(super) Incarnation);

impl SimulatedCaller {
    pub(in crate::subscription) async fn consume(&mut self, batch: &[StoredSlice]) -> Result<i32, CallError> {
        let world = Arc::clone(&self.0.world);
        let address = || "simulated:1".to_owned();
        let places: Vec<Place> = batch
            .iter()
            .flat_map(StoredSlice::messages)
            .map(|message| message.unwrap())
            .map(|message| (message.partition, message.id))
            .collect();
        let mut deaths = world.deaths.subscribe();
        let (trouble, is_away, takes) = {
            let mut state = world.lock();
            if places.is_empty() {
                state.empty_calls += 1
            } else {
                state.calls += 1
            }
            (state.trouble, state.away_until > Instant::now(), Duration::from_millis(state.random.u64(1..60)))
        };
        if trouble == Trouble::Down || is_away {
            sleep(Duration::from_millis(1)).await;
            return Err(CallError::Connect { address: address(), reason: "connection refused".to_owned() });
        }
        if trouble == Trouble::Hangs {
            // An end without an answer is one attempt, and in the search for poison one is enough.
            world.lock().blamed.extend((places.len() == 1).then(|| places[0]));
            sleep(world.call_timeout).await;
            return Err(CallError::Timeout { address: address(), after: world.call_timeout });
        }
        let ended = || CallError::Closed { address: address(), reason: "end of stream".to_owned() };
        tokio::select! {
            biased;
            _ = deaths.changed() => return Err(ended()),
            () = sleep(takes) => {}
        }
        self.0.alive().await;
        if places.is_empty() {
            return Ok(0);
        }
        let failure = match self.answer(trouble, &places) {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        match failure {
            Failure::MinusOne => Ok(-1),
            Failure::Exception => Err(CallError::Exception { address: address(), text: "it failed".to_owned() }),
            Failure::Dies => {
                {
                    let mut state = world.lock();
                    let away = state.random.u64(0..3000);
                    state.away_until = Instant::now() + Duration::from_millis(away);
                }
                world.deaths.send_modify(|deaths| *deaths += 1);
                Err(ended())
            }
            Failure::Hangs => {
                sleep(world.call_timeout.saturating_sub(takes)).await;
                Err(CallError::Timeout { address: address(), after: world.call_timeout })
            }
        }
    }

    fn answer(&self, trouble: Trouble, places: &[Place]) -> Result<i32, Failure> {
        let world = &self.0.world;
        let mut state = world.lock();
        match trouble {
            Trouble::FailsAll => {
                state.blamed.extend((places.len() == 1).then(|| places[0]));
                return Err(Failure::MinusOne);
            }
            Trouble::Busy => return Ok(-2),
            _ => {}
        }
        let met = state.meets(places);
        let good = met.map_or(places.len(), |(at, _)| at);
        let says_how_far = state.random.bool();
        match met {
            None if says_how_far && state.random.bool() => {
                // Stops early, of its own accord.
                let k = state.random.usize(1..=good);
                state.accept(&places[..k], world.ordered);
                Ok(i32::try_from(k).unwrap())
            }
            None => {
                state.accept(places, world.ordered);
                Ok(0)
            }
            Some((at, Some(_) | None)) if at > 0 && says_how_far => {
                state.accept(&places[..at], world.ordered);
                Ok(i32::try_from(at).unwrap())
            }
            Some((0, None)) => {
                state.blamed.insert(places[0]);
                Ok(-3)
            }
            // It is not the first one: the batch fails.
            Some((_, None)) => Err(Failure::MinusOne),
            Some((_, Some(failure))) => {
                state.blamed.extend((places.len() == 1).then(|| places[0]));
                Err(failure)
            }
        }
    }
}

impl DeadLetterBox for Incarnation {
    fn takes(&self, _: &str) -> bool {
        true
    }

    fn keep(&self, letter: DeadLetter) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let place = (letter.partition, letter.message.first);
            let fails = self.delay().await;
            let mut state = self.world.lock();
            if letter.message.count != 1 {
                state.note(format!("a letter of {} messages", letter.message.count));
            }
            if !state.blamed.contains(&place) {
                state.note(format!("{place:?} was dead-lettered, and never failed alone"));
            }
            if fails && state.random.bool() {
                return Err("the disk is full".to_owned());
            }
            state.letters.insert(place);
            // Kept, and the answer is lost.
            if fails { Err("no answer".to_owned()) } else { Ok(()) }
        })
    }
}

impl Coordinator for Incarnation {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Node>, CoordinationError>> {
        Box::pin(async move {
            if self.delay().await {
                return Err(CoordinationError::Away("no answer".to_owned()));
            }
            let state = self.world.lock();
            let node = state.nodes.get(path);
            Ok(node.map(|(payload, version)| Node { payload: payload.clone(), version: *version, owner_session: None }))
        })
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        payload: &'a [u8],
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<i32, CoordinationError>> {
        Box::pin(async move {
            let fails = self.delay().await;
            let away = || Err(CoordinationError::Away("no answer".to_owned()));
            let mut state = self.world.lock();
            if fails && state.random.bool() {
                return away();
            }
            let Some((before, found)) = state.nodes.get(path).cloned() else {
                return Err(CoordinationError::NoNode(path.to_owned()));
            };
            if let Some(wanted) = version.filter(|wanted| *wanted != found) {
                return Err(CoordinationError::BadVersion { path: path.to_owned(), wanted, found });
            }
            check_checkpoint(&mut state, path, payload, &before);
            state.nodes.insert(path.to_owned(), (payload.to_vec(), found + 1));
            if fails { away() } else { Ok(found + 1) }
        })
    }

    fn create<'a>(&'a self, _: &'a str, _: &'a [u8], _: NodeKind) -> BoxFuture<'a, Result<Created, CoordinationError>> {
        unreachable!("a subscription makes no nodes")
    }

    fn delete<'a>(&'a self, _: &'a str, _: Option<i32>) -> BoxFuture<'a, Result<(), CoordinationError>> {
        unreachable!("a subscription deletes no nodes")
    }

    fn children<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, CoordinationError>> {
        unreachable!("a subscription reads no children")
    }

    fn watch_node(&self, _: &str) -> watch::Receiver<Observed<Option<Node>>> {
        unreachable!("a subscription watches nothing")
    }

    fn watch_children(&self, _: &str) -> watch::Receiver<Observed<Option<Vec<String>>>> {
        unreachable!("a subscription watches nothing")
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.session.clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        unreachable!("a schedule ends by being dropped")
    }
}

/// A checkpoint that is about to be written: it passes nothing that is not finished, and never falls by itself.
fn check_checkpoint(state: &mut State, path: &str, payload: &[u8], before: &[u8]) {
    let partition: i16 = path.split('/').nth_back(1).unwrap().parse().unwrap();
    let (new, old) = (Checkpoint::from_payload(payload, 0).unwrap(), Checkpoint::from_payload(before, 0).unwrap());
    if let Some(first) = state.first_unfinished(partition)
        && first <= new.id
    {
        state.note(format!("the checkpoint {} of partition {partition} passes {first}, which is not finished", new.id));
    }
    if new.id < old.id {
        match state.may_fall.get_mut(&partition) {
            Some(times) if *times > 0 => *times -= 1,
            _ => state.note(format!("the checkpoint of partition {partition} falls from {} to {}", old.id, new.id)),
        }
    }
}
