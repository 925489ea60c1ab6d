//! Ownership under every kind of trouble, by seed: several brokers that want the same partition, sessions that end, a network that
//! delays, processes that stand still. The real lease, claims and ownership; a simulated ensemble, and the test's own clock.
//!
//! What must hold: whoever acknowledges a put holds the owner node at that moment, so there are never two; and an owner knows
//! of everything that was acknowledged before it. A lease that is counted wrongly must be found out.
//!
//! `HQUEUE_SEED` runs one seed, `HQUEUE_LONG_SCHEDULES` so many.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod client;
mod server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{Client, LeaseRule, Network};
use hqueue_coordination::{NodeKind, SharedCoordinator};
use server::Server;
use tokio::time::{Instant, sleep};

use super::{Claims, Lease, Ownership};
use crate::data_folder::SessionBook;
use crate::paths;

const QUEUE: &str = "q";
const BROKERS: u64 = 3;
/// Of the test's clock.
const SCHEDULE: Duration = Duration::from_secs(40);

/// What was stored of the one partition, and what went wrong.
#[derive(Debug, Default)]
struct World {
    /// Every message that was acknowledged, in order, with the broker that did.
    acknowledged: Vec<(u64, u64)>,
    claims: u64,
    violations: Vec<String>,
}

struct Broker {
    client: Arc<Client>,
    claims: Claims,
    ownership: Ownership,
    world: Arc<Mutex<World>>,
    number: u64,
    /// So many messages were acknowledged when it claimed last: these it has read.
    acknowledged_before: Mutex<usize>,
}

impl Broker {
    /// Claims the partition whenever it is free.
    async fn claim(&self) {
        loop {
            self.client.running().await;
            let path = paths::owner(QUEUE, 0);
            if let Ok(seen) = self.claims.coordinator.get(&path).await {
                let before = self.ownership.claim_of(0);
                // That somebody else has it is no failure.
                let _ = self.claims.claim_all(QUEUE, &self.ownership, vec![(0, seen)]).await;
                let now = self.ownership.claim_of(0);
                if now.is_some() && now != before {
                    let mut world = self.world.lock().unwrap();
                    world.claims += 1;
                    *self.acknowledged_before.lock().unwrap() = world.acknowledged.len();
                }
            }
            let pause = self.client.random.lock().unwrap().u64(20..400);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Puts a message as the gateway does: held, stored, still held, acknowledged.
    async fn put(&self, number: u64) {
        self.client.running().await;
        let Some(held) = self.ownership.held(0) else { return };
        let takes = {
            let mut random = self.client.random.lock().unwrap();
            let most = if random.u8(0..20) == 0 { 4000 } else { 30 };
            random.u64(0..most)
        };
        sleep(Duration::from_millis(takes)).await;
        self.client.running().await;
        if self.ownership.still(0, held) {
            self.acknowledge(number);
        }
    }

    fn acknowledge(&self, number: u64) {
        let session = self.ownership.claim_of(0);
        let holder = self.client.server.lock().unwrap().holder(&paths::owner(QUEUE, 0));
        let mut world = self.world.lock().unwrap();
        if holder != session {
            let text = format!("{number} is acknowledged by session {session:?}, while {holder:?} holds the partition");
            world.violations.push(text);
        }
        // It read the store when it claimed: what others have acknowledged since it does not know.
        let since = *self.acknowledged_before.lock().unwrap();
        let unknown: Vec<_> = world.acknowledged.iter().skip(since).filter(|(_, by)| *by != self.number).collect();
        if !unknown.is_empty() {
            let text = format!("broker {} acknowledges {number} without knowing of {unknown:?}", self.number);
            world.violations.push(text);
        }
        world.acknowledged.push((number, self.number));
    }

    async fn puts(self: Arc<Self>, base: u64) {
        for n in 0.. {
            let broker = Arc::clone(&self);
            tokio::spawn(async move { broker.put(base + n).await });
            let pause = self.client.random.lock().unwrap().u64(10..200);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Stands still now and then, mostly for less than a session, sometimes for longer.
    async fn stops(self: Arc<Self>) {
        loop {
            let (run, stop) = {
                let mut random = self.client.random.lock().unwrap();
                let longest = if random.bool() { 1_000 } else { 9_000 };
                (random.u64(500..15_000), random.u64(10..longest))
            };
            sleep(Duration::from_millis(run)).await;
            *self.client.stopped_until.lock().unwrap() = Instant::now() + Duration::from_millis(stop);
        }
    }
}

/// One schedule. Returns what happened.
fn run(seed: u64, rule: LeaseRule) -> World {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let world = Arc::new(Mutex::new(World::default()));
    runtime.block_on(schedule(seed, rule, Arc::clone(&world)));
    drop(runtime);
    Arc::into_inner(world).unwrap().into_inner().unwrap()
}

async fn schedule(seed: u64, rule: LeaseRule, world: Arc<Mutex<World>>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let server = Arc::new(Mutex::new(Server::default()));
    {
        let mut server = server.lock().unwrap();
        let session = server.begin_session(Duration::from_secs(1));
        server.create(session, &paths::partition(QUEUE, 0), b"", NodeKind::Persistent).unwrap();
    }
    let timeout = Duration::from_millis(random.u64(1_000..5_000));
    for n in 0..BROKERS {
        let network = Network {
            usual: Duration::from_millis(random.u64(1..40)),
            slow_percent: random.u8(0..12),
            slow: Duration::from_millis(random.u64(50..8_000)),
        };
        let client = Arc::new(Client::new(Arc::clone(&server), timeout, rule, network, random.u64(..)));
        let coordinator: SharedCoordinator = Arc::clone(&client) as _;
        let lease = Lease::new(&*coordinator);
        let book = Arc::new(SessionBook::in_memory());
        let claims = Claims { coordinator, lease: lease.clone(), book, broker: format!("b{n}") };
        let broker = Arc::new(Broker {
            client: Arc::clone(&client),
            claims,
            ownership: Ownership::new(lease, 1),
            world: Arc::clone(&world),
            number: n,
            acknowledged_before: Mutex::default(),
        });
        tokio::spawn(client.live());
        let claiming = Arc::clone(&broker);
        tokio::spawn(async move { claiming.claim().await });
        tokio::spawn(Arc::clone(&broker).puts(n * 1_000_000));
        tokio::spawn(broker.stops());
    }
    sleep(SCHEDULE).await;
}

fn seeds(short: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match (number("HQUEUE_SEED"), number("HQUEUE_LONG_SCHEDULES")) {
        (Some(seed), _) => vec![seed],
        (None, Some(many)) => (0..many).collect(),
        (None, None) => (0..short).map(|_| fastrand::u64(..)).collect(),
    }
}

#[test]
fn there_are_never_two_owners_and_nothing_acknowledged_is_unknown() {
    let (mut acknowledged, mut claims) = (0, 0_u64);
    let seeds = seeds(100);
    for seed in &seeds {
        let world = run(*seed, LeaseRule::Safe);
        assert!(world.violations.is_empty(), "HQUEUE_SEED={seed}: {:#?}", world.violations);
        acknowledged += world.acknowledged.len();
        claims += world.claims;
    }
    println!("{} schedules: {acknowledged} acknowledged puts, {claims} claims", seeds.len());
    // A simulation in which nothing happens shows nothing.
    assert!(acknowledged > 50 * seeds.len() && claims > 2 * seeds.len() as u64, "{acknowledged} puts, {claims} claims");
}

#[test]
fn a_lease_that_is_counted_wrongly_is_found_out() {
    let found = (0..300).find(|seed| !run(*seed, LeaseRule::Broken).violations.is_empty());
    println!("found by seed {found:?}");
    assert!(found.is_some(), "a lease as long as the session, counted from the answer, went unnoticed");
}
