//! A subscription under every kind of trouble, by seed: the real workers, endpoints, senders and checkpoint updater, over a store in
//! memory and a consumer that is made up, on the test's own clock. The consumer fails in every way that there is, the broker is killed and
//! begins anew from the checkpoints that were written, somebody moves checkpoints back, pauses and resumes.
//!
//! What must hold: every message is consumed or a dead letter in the end; in order, unless that was not asked for; only what failed alone
//! is dead-lettered; no checkpoint ever passes what is not finished; what is unread is kept.
//!
//! `HQUEUE_SEED` runs one seed, `HQUEUE_LONG_DELIVERIES` so many.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "these are tests")]

mod world;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;
use hqueue_storage::memory::MemoryStore;
use hqueue_storage::store::{CommitListener, MessageStore, QueueSpec, QueueStore};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(in crate::subscription) use self::world::SimulatedCaller;
use self::world::{Failure, Fate, Incarnation, Place, Ticks, Trouble, World};
use super::call_log::Calls;
use super::checkpoint::{Checkpoint, CheckpointUpdater};
use super::endpoint::EndpointSpec;
use super::options::{OnPoison, Ordering as MessageOrder, SubscriptionOptions};
use super::shared::{SubscriptionShared, TaskScope};
use super::subscription::{Subscription, SubscriptionRecord, SubscriptionState};
use super::unread::{Readers, Unread};
use super::worker::before;
use crate::cluster::{Lease, Ownership};
use crate::explain::state_of;
use crate::partition::{CommitWaiters, TopicFilter};
use crate::paths;

const QUEUE: &str = "q";
const NAME: &str = "s";
const PARTITIONS: i16 = 2;
/// Longer than anything takes once the trouble is over.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

thread_local! {
    /// Who answers at an address. A schedule runs on one thread.
    static CONSUMERS: RefCell<HashMap<String, Incarnation>> = RefCell::new(HashMap::new());
}

/// The consumer at this address, if it is made up.
pub(super) fn caller_at(address: &str) -> Option<SimulatedCaller> {
    CONSUMERS.with_borrow(|consumers| consumers.get(address).cloned().map(SimulatedCaller))
}

/// One life of a broker.
struct Broker {
    incarnation: Incarnation,
    address: String,
    scope: TaskScope,
    subscription: Arc<Subscription>,
    store: Arc<dyn QueueStore>,
    waiters: Arc<CommitWaiters>,
    unread: Arc<Unread>,
}

struct Simulation {
    world: Arc<World>,
    store: MemoryStore,
    options: SubscriptionOptions,
    lives: u64,
    broker: Option<Broker>,
}

impl Simulation {
    fn new(seed: u64, options: SubscriptionOptions, calm: bool) -> Self {
        fastrand::seed(seed);
        let ordered = options.ordering == MessageOrder::Partition;
        let world = Arc::new(World::new(seed, ordered, calm, options.call_timeout));
        for partition in 0..PARTITIONS {
            let first = Checkpoint::at(MessageId::MIN).to_payload();
            world.lock().nodes.insert(paths::checkpoint(QUEUE, partition, NAME), (first, 0));
        }
        let store = MemoryStore::new(Arc::new(Ticks(Arc::clone(&world))));
        Self { world, store, options, lives: 0, broker: None }
    }

    /// Kills the broker, if there is one, and starts another.
    async fn restart(&mut self) {
        if let Some(broker) = self.broker.take() {
            broker.incarnation.lives.store(false, Ordering::Relaxed);
            broker.scope.stop.cancel();
            broker.scope.abort.cancel();
            self.store = self.store.restarted();
        }
        self.lives += 1;
        let incarnation = Incarnation::new(&self.world);
        let scope = TaskScope {
            handle: Handle::current(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        let waiters = Arc::new(CommitWaiters::new(PARTITIONS));
        let uid = uuid::Uuid::from_u128(7);
        let spec = QueueSpec { name: QUEUE.to_owned(), uid, partitions: PARTITIONS, ttl_ms: i64::MAX / 4, limit: None };
        let store = self.store.open_queue(spec, Arc::clone(&waiters) as Arc<_>).await.unwrap();
        let ownership = Arc::new(Ownership::new(Lease::new(&incarnation), PARTITIONS));
        (0..PARTITIONS).for_each(|partition| ownership.claimed(partition, 1));
        let address = format!("simulated-{}:1", self.lives);
        CONSUMERS.with_borrow_mut(|consumers| consumers.insert(address.clone(), incarnation.clone()));
        let unread = Arc::new(Unread::new(Arc::clone(&store)));
        let readers = |p| (p, Readers::from([(NAME, self.node(p).id.successor())]));
        unread.seen(&(0..PARTITIONS).map(readers).collect(), unread.stamp(), |_| false);
        let shared = self.shared(&incarnation, &scope, ownership, &unread);
        let record = SubscriptionRecord::default();
        let subscription = Arc::new(Subscription::new(shared, record, Arc::clone(&store), Arc::clone(&waiters)));
        subscription.set_endpoints(vec![(EndpointSpec::fixed(address.clone()), None)]);
        for partition in 0..PARTITIONS {
            subscription.start(partition, self.node(partition));
        }
        self.broker = Some(Broker { incarnation, address, scope, subscription, store, waiters, unread });
    }

    fn shared(
        &self,
        incarnation: &Incarnation,
        scope: &TaskScope,
        ownership: Arc<Ownership>,
        unread: &Arc<Unread>,
    ) -> SubscriptionShared {
        SubscriptionShared::new(
            QUEUE.to_owned(),
            NAME.to_owned(),
            PARTITIONS,
            self.options.clone(),
            TopicFilter::default(),
            Arc::new(CheckpointUpdater::new(Arc::new(incarnation.clone()), scope.clone())),
            scope.clone(),
            Arc::new(AtomicBool::new(false)),
            ownership,
            Arc::new(incarnation.clone()),
            Some(Arc::clone(unread)),
            Calls::new(&Arc::default()),
        )
    }

    /// Sets other options: another subscription takes the place of the one at work, when its calls have ended.
    async fn set_options(&mut self, options: SubscriptionOptions) {
        let old = Arc::clone(&self.broker().subscription);
        while !old.retire() {
            old.idle().await;
        }
        self.options = options;
        let Broker { incarnation, scope, unread, address, .. } = self.broker();
        let former = old.shared();
        let mut shared = self.shared(incarnation, scope, Arc::clone(&former.ownership), unread);
        shared.checkpoints = Arc::clone(&former.checkpoints);
        let next = old.replaced(shared, SubscriptionRecord::default()).await;
        next.set_endpoints(vec![(EndpointSpec::fixed(address.clone()), None)]);
        if let Some(broker) = &mut self.broker {
            broker.subscription = next;
        }
    }

    /// What stands in the node of a checkpoint.
    fn node(&self, partition: i16) -> Checkpoint {
        let state = self.world.lock();
        let (payload, version) = &state.nodes[&paths::checkpoint(QUEUE, partition, NAME)];
        Checkpoint::from_payload(payload, *version).unwrap()
    }

    /// What is unread is kept: by what is stored, and by what is wanted again. `exactly`: and nothing else.
    fn check_unread(&self, exactly: bool) {
        for worker in self.broker().subscription.workers() {
            let (partition, node, here) = (worker.partition(), self.node(worker.partition()).id, worker.checkpoint().id);
            let told = self.broker().unread.told(partition);
            let lowest = node.min(here).successor();
            if told > lowest || (exactly && told != lowest) {
                let what = format!("partition {partition}: kept from {told} on, the node says {node}, the worker {here}");
                self.world.lock().violations.push(what);
            }
        }
    }

    /// What is said of messages is true: nobody is told that one was delivered that was not.
    fn check_explained(&self, random: &mut fastrand::Rng) {
        let places: Vec<Place> = self.world.lock().fates.keys().copied().collect();
        for _ in 0..places.len().min(10) {
            let Some(place) = random.choice(&places) else { return };
            let letter = self.world.lock().letters.contains(place);
            let said = state_of(&self.broker().subscription, place.0, place.1, letter);
            let mut state = self.world.lock();
            let is_true = match said {
                "delivered" => state.accepted.contains_key(place),
                // A hand may move forward what a command has moved back.
                "below_checkpoint" | "passed_over" => state.is_finished(place),
                "dead_lettered" => letter,
                // Of one that was moved back it may be the second time.
                "waiting" | "in_flight" => true,
                _ => false,
            };
            if !is_true {
                state.violations.push(format!("{place:?} is said to be {said}"));
            }
        }
    }

    fn broker(&self) -> &Broker {
        self.broker.as_ref().unwrap()
    }

    /// Puts messages with these fates.
    fn put(&self, partition: i16, fates: &[Fate]) {
        let mut batch = PutBatch::default();
        fates.iter().for_each(|_| batch.push(b"t", b"v", &[]));
        let broker = self.broker();
        // Before the commit wakes anybody.
        let append = broker.store.append(partition, batch).unwrap();
        let mut state = self.world.lock();
        state.fates.extend(append.ids.iter().zip(fates).map(|(id, fate)| ((partition, id), *fate)));
        drop(state);
        broker.waiters.committed(partition);
    }

    /// Moves a checkpoint back, by command or with a hand in the node.
    fn move_back(&self, partition: i16, to: MessageId, by_hand: bool) {
        let worker = self.broker().subscription.worker(partition).unwrap();
        let mut state = self.world.lock();
        *state.may_fall.entry(partition).or_default() += 1;
        if !by_hand {
            drop(state);
            return worker.seek(Checkpoint::at(to));
        }
        let node = state.nodes.get_mut(&paths::checkpoint(QUEUE, partition, NAME)).unwrap();
        *node = (Checkpoint::at(to).to_payload(), node.1 + 1);
        let seen = Checkpoint::from_payload(&node.0, node.1).unwrap();
        drop(state);
        worker.seen(seen);
    }

    fn unfinished(&self) -> usize {
        let state = self.world.lock();
        state.fates.keys().filter(|place| !state.is_finished(place)).count()
    }

    /// Waits until everything is consumed or a letter, and the checkpoints say so.
    async fn settle(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let subscription = &self.broker().subscription;
        let is_done = || {
            let last = |p: i16| self.broker().store.committed(p).unwrap().last;
            let behind = subscription.workers().iter().any(|w| last(w.partition()).is_some_and(|last| w.checkpoint().id < last));
            self.unfinished() == 0 && !behind
        };
        while !is_done() {
            if Instant::now() > deadline {
                return false;
            }
            sleep(Duration::from_secs(10)).await;
            if matches!(subscription.state(), SubscriptionState::Failing | SubscriptionState::Blocked) {
                subscription.resume();
            }
        }
        true
    }
}

fn any_failure(random: &mut fastrand::Rng) -> Failure {
    [Failure::MinusOne, Failure::Exception, Failure::Dies, Failure::Hangs][random.usize(0..4)]
}

fn any_fate(random: &mut fastrand::Rng) -> Fate {
    match random.u8(0..40) {
        0 => Fate::Poison(any_failure(random)),
        1 => Fate::Refused,
        2 | 3 => Fate::Flaky(random.u32(1..4), any_failure(random)),
        _ => Fate::Good,
    }
}

fn any_options(random: &mut fastrand::Rng) -> SubscriptionOptions {
    SubscriptionOptions {
        ordering: if random.bool() { MessageOrder::Partition } else { MessageOrder::None },
        calls: random.u32(1..5),
        max_span: random.u32(5..200),
        retry_min: Duration::from_millis(random.u64(10..2000)),
        retry_max: Duration::from_secs(random.u64(2..60)),
        call_timeout: Duration::from_secs(random.u64(1..30)),
        max_attempts: random.u32(1..6),
        batch_messages: random.u32(1..40),
        max_dead_in_a_row: if random.bool() { 10 } else { 1_000 },
        window_messages: if random.bool() { 0 } else { random.u32(1..100) },
        rate_messages: if random.u8(0..4) == 0 { random.u32(5..100) } else { 0 },
        on_poison: if random.u8(0..5) == 0 { OnPoison::Block } else { OnPoison::DeadLetter },
        ..SubscriptionOptions::default()
    }
}

/// One schedule. Returns what went wrong.
async fn schedule(seed: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut asking = fastrand::Rng::with_seed(seed);
    let options = any_options(&mut random);
    let blocks = options.on_poison == OnPoison::Block;
    let mut simulation = Simulation::new(seed, options.clone(), false);
    simulation.restart().await;
    for _ in 0..random.usize(20..80) {
        sleep(Duration::from_millis(random.u64(0..4000))).await;
        let partition = random.i16(0..PARTITIONS);
        simulation.check_unread(false);
        simulation.check_explained(&mut asking);
        match random.u8(0..40) {
            0 | 1 => simulation.restart().await,
            2 => {
                let node = simulation.broker().subscription.worker(partition).unwrap().checkpoint().id;
                let earlier: Vec<MessageId> = simulation
                    .world
                    .lock()
                    .fates
                    .keys()
                    .filter(|(p, id)| *p == partition && *id <= node)
                    .map(|(_, id)| *id)
                    .collect();
                if let Some(to) = random.choice(&earlier) {
                    simulation.move_back(partition, before(*to), random.bool());
                }
            }
            3 => {
                simulation.broker().subscription.set_paused(true);
                sleep(Duration::from_millis(random.u64(0..5000))).await;
                simulation.broker().subscription.set_paused(false);
            }
            4 => simulation.broker().subscription.resume(),
            9 | 10 => {
                let other = any_options(&mut random);
                // Whether poison blocks decides what is right at the end.
                simulation
                    .set_options(SubscriptionOptions { on_poison: options.on_poison, ordering: options.ordering, ..other })
                    .await;
            }
            5..9 => {
                let troubles = [Trouble::Down, Trouble::Hangs, Trouble::FailsAll, Trouble::Busy];
                simulation.world.lock().trouble = troubles[random.usize(0..4)];
                sleep(Duration::from_millis(random.u64(0..120_000))).await;
                simulation.world.lock().trouble = Trouble::None;
            }
            _ => {
                let fates: Vec<Fate> = (0..random.usize(1..40)).map(|_| any_fate(&mut random)).collect();
                simulation.put(partition, &fates);
            }
        }
    }
    if blocks {
        // Somebody has mended the consumer.
        for fate in simulation.world.lock().fates.values_mut() {
            if matches!(fate, Fate::Poison(_)) {
                *fate = Fate::Good;
            }
        }
    }
    let ends = simulation.settle().await;
    sleep(Duration::from_secs(60)).await;
    simulation.check_unread(ends);
    simulation.check_explained(&mut asking);
    let mut state = simulation.world.lock();
    let poison: Vec<_> = state.fates.iter().filter(|(_, fate)| matches!(fate, Fate::Poison(_))).map(|(p, _)| *p).collect();
    let mut wrong = std::mem::take(&mut state.violations);
    if !ends {
        let left: Vec<_> = state.fates.iter().filter(|(place, _)| !state.is_finished(place)).take(3).collect();
        wrong.push(format!("it does not end: {left:?}"));
        wrong.push(format!("{:?} at {:?}", simulation.broker().subscription.state(), Instant::now()));
        wrong.extend(simulation.broker().subscription.workers().iter().map(|worker| worker.describe()));
    }
    if let Some(place) = poison.iter().find(|place| state.accepted.contains_key(*place)) {
        wrong.push(format!("{place:?} is poison, and was accepted"));
    }
    if !wrong.is_empty() {
        wrong.push(format!("{options:?}"));
    }
    wrong
}

/// On a clock of its own, which stands still while anything is to be done.
fn on_own_clock<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(what)
}

#[test]
fn everything_is_delivered_or_dead_lettered() {
    let one = std::env::var("HQUEUE_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let many = std::env::var("HQUEUE_LONG_DELIVERIES").map_or(60, |many| many.parse::<u64>().unwrap());
    let first = one.unwrap_or_else(|| fastrand::u64(..) / 2);
    for seed in first..first + if one.is_some() { 1 } else { many } {
        let wrong = on_own_clock(schedule(seed));
        assert!(wrong.is_empty(), "HQUEUE_SEED={seed}: {wrong:#?}");
    }
}

/// A day of trouble with everything as it is without options. Returns letters, calls with messages and empty ones.
async fn day(trouble: Trouble, ordering: MessageOrder) -> (usize, u64, u64) {
    let options = SubscriptionOptions { ordering, ..SubscriptionOptions::default() };
    let mut simulation = Simulation::new(1, options, true);
    simulation.restart().await;
    simulation.put(0, &[Fate::Good; 10]);
    assert!(simulation.settle().await, "all is well at first");
    simulation.world.lock().trouble = trouble;
    for _ in 0..24 {
        for partition in 0..PARTITIONS {
            simulation.put(partition, &[Fate::Good; 300]);
        }
        sleep(Duration::from_secs(3600)).await;
    }
    let (letters, calls, empty) = {
        let mut state = simulation.world.lock();
        state.trouble = Trouble::None;
        (state.letters.len(), state.calls, state.empty_calls)
    };
    let began = Instant::now();
    assert!(simulation.settle().await, "it recovers by itself");
    assert!(began.elapsed() < Duration::from_secs(300), "{trouble:?}: within {:?}", began.elapsed());
    assert_eq!(simulation.world.lock().violations, Vec::<String>::new());
    (letters, calls, empty)
}

/// A call every minute and what it took to find out: so much is a day's trouble.
const CALLS_A_DAY: u64 = 24 * 60 * 2 + 500;

#[test]
fn a_day_of_silence_dead_letters_nothing() {
    for ordering in [MessageOrder::Partition, MessageOrder::None] {
        for trouble in [Trouble::Down, Trouble::Hangs, Trouble::Busy] {
            let (letters, calls, empty) = on_own_clock(day(trouble, ordering));
            println!("{trouble:?} {ordering:?}: {letters} letters, {calls} calls, {empty} empty ones");
            assert_eq!(letters, 0, "{trouble:?} {ordering:?}");
            // -2 is asked for again by each partition, and without order by each of its batches.
            assert!(
                calls < CALLS_A_DAY * 8 && empty < CALLS_A_DAY,
                "{trouble:?} {ordering:?}: {calls} calls, {empty} empty ones"
            );
        }
    }
}

#[test]
fn a_day_of_failures_dead_letters_ten() {
    for ordering in [MessageOrder::Partition, MessageOrder::None] {
        let (letters, calls, empty) = on_own_clock(day(Trouble::FailsAll, ordering));
        println!("{ordering:?}: {letters} letters, {calls} calls, {empty} empty ones");
        assert_eq!(letters, 10, "{ordering:?}");
        assert!(calls < CALLS_A_DAY * 2, "{ordering:?}: {calls} calls");
    }
}

/// A commit of one who pulls waits for its own write, not for what else has moved; and many at once are one write.
#[test]
fn a_commit_writes_its_own_checkpoint() {
    on_own_clock(async {
        let mut simulation = Simulation::new(5, SubscriptionOptions::default(), true);
        simulation.restart().await;
        simulation.broker().subscription.set_paused(true);
        let partitions = [0, 1];
        partitions.iter().for_each(|p| simulation.put(*p, &[Fate::Good; 10]));
        let workers = partitions.map(|p| simulation.broker().subscription.worker(p).unwrap());
        let last = partitions.map(|p| simulation.broker().store.committed(p).unwrap().last.unwrap());
        simulation.world.lock().accept_all();
        let commits: Vec<_> = workers.iter().zip(last).map(|(worker, last)| worker.commit(last)).collect();
        let versions = || partitions.map(|p| simulation.node(p).version);
        let before = versions();
        let updater = Arc::clone(&workers[0].shared().checkpoints);
        let began = Instant::now();
        tokio::join!(updater.write_now(&workers[0]), updater.write_now(&workers[0]), updater.write_now(&workers[0]));
        assert!(began.elapsed() < Duration::from_secs(1), "it waits for nothing");
        assert_eq!(simulation.node(0).id, last[0]);
        assert_eq!(versions(), [before[0] + 1, before[1]], "one write, of its own node");
        assert!(workers[0].is_stored(commits[0]) && !workers[1].is_stored(commits[1]));
        sleep(Duration::from_secs(5)).await;
        assert_eq!(simulation.node(1).id, last[1], "the other is written in its time");
        assert_eq!(versions(), [before[0] + 1, before[1] + 1]);
    });
}

/// What the simulation is for: a fault that is put in on purpose must be found out.
#[test]
fn a_checkpoint_that_passes_a_message_is_found_out() {
    on_own_clock(async {
        let mut simulation = Simulation::new(3, SubscriptionOptions::default(), true);
        simulation.restart().await;
        simulation.world.lock().trouble = Trouble::Down;
        simulation.put(0, &[Fate::Good; 10]);
        let ids: Vec<MessageId> = simulation.world.lock().fates.keys().map(|(_, id)| *id).collect();
        simulation.broker().subscription.worker(0).unwrap().seek(Checkpoint::at(ids[4]));
        sleep(Duration::from_secs(5)).await;
        assert!(simulation.world.lock().violations.iter().any(|v| v.contains("passes")));
    });
}
