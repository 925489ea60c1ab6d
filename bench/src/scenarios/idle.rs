//! What a broker costs that has nothing to do.

use std::time::{Duration, Instant};

use serde_json::json;

use super::flow::{self, Flow, PATIENCE};
use super::rounds::Rounds;
use super::{Bench, goals};
use crate::driver::{Admin, Clock, Load, Producers, Receiver, Until};
use crate::failure::Outcome;
use crate::messages::{Ledger, PutShape};
use crate::peers::Peer;
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Live, Running, Side, bare_broker, queue_name};

const PARTITIONS: u16 = 1000;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 100 };
/// For checkpoints to be written and connections to come to rest.
const SETTLE: Duration = Duration::from_secs(5);

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut rounds = Rounds::of("idle-1000");
    for _ in 0..bench.rounds {
        rounds.begin();
        rounds.add(Side::HQueue.name(), measure(bench).await)?;
        for peer in &bench.places.peers {
            rounds.add(peer.name(), measure_peer(bench, *peer).await)?;
        }
    }
    let settings = json!({
        "partitions": PARTITIONS, "subscriptions": PARTITIONS, "partitions_a_subscription": bench.idle_partitions, "seconds": bench.idle.as_secs_f64(),
    });
    let mut goals =
        vec![Goal::alone("CPU %", Bound::AtMost(1.0)), Goal::alone("sleeps/s", Bound::None), Goal::alone("RSS MiB", Bound::None)];
    goals.extend(goals::over_peers(bench, &[("CPU %", Bound::AtMost(0.1)), ("RSS MiB", Bound::None)]));
    Ok(vec![ScenarioReport::new("idle-1000", settings, rounds.rounds, rounds.failures, &goals)])
}

/// Every subscription gets a message of each of its partitions first, so that it has its connection and its checkpoints.
async fn measure(bench: &Bench) -> Outcome<Figures> {
    let (clock, dialect) = (Clock::start(), Side::HQueue.dialect());
    let load = Load { queues: 1, partitions: PARTITIONS, producers: 1, in_flight: 16, shape: SHAPE };
    let receiver = Receiver::listen(1, dialect.clone(), Ledger::new(1, usize::from(PARTITIONS)), clock).await?;
    let mut running = bare_broker(&bench.places, Durability::Sync).await?;
    let mut admin = Admin::connect(running.address).await?;
    let began = Instant::now();
    admin.create_queue(&queue_name(0), PARTITIONS).await?;
    for number in 0..PARTITIONS {
        let partitions = (number..number + bench.idle_partitions).map(|partition| (partition % PARTITIONS).cast_signed());
        admin.subscribe(&queue_name(0), &format!("s{number}"), partitions.collect(), receiver.addresses()).await?;
    }
    let set_up = began.elapsed();
    let mut producers = Producers::connect(running.address, &dialect, &load, clock).await?;
    producers.run(Until::Puts(u64::from(PARTITIONS))).await?;
    receiver.wait_arrived(u64::from(PARTITIONS) * u64::from(bench.idle_partitions), PATIENCE).await?;
    tokio::time::sleep(SETTLE).await;

    watch(bench, &mut running, set_up).await
}

/// One subscriber with a consumer a partition, since that is how a peer's subscriptions wait; Kafka's and RocketMQ's wait in one client.
async fn measure_peer(bench: &Bench, peer: Peer) -> Outcome<Figures> {
    let load = Load { queues: 1, partitions: PARTITIONS, producers: 1, in_flight: 16, shape: SHAPE };
    let durability = Durability::Sync;
    let flow = Flow::closed(bench, load, durability);
    let began = Instant::now();
    let mut live = Live::start(Side::Peer(peer), &bench.places, &flow.plan()).await?;
    let set_up = began.elapsed();
    let mut producers = live.producers(&flow.load).await?;
    producers.run(Until::Puts(u64::from(PARTITIONS))).await?;
    flow::wait_all_taken(&live, u64::from(PARTITIONS)).await?;
    tokio::time::sleep(SETTLE).await;
    watch(bench, &mut live.running, set_up).await
}

async fn watch(bench: &Bench, running: &mut Running, set_up: Duration) -> Outcome<Figures> {
    let before = running.usage()?;
    tokio::time::sleep(bench.idle).await;
    let used = running.usage()?.since(before);
    running.check()?;
    Ok(Figures::default()
        .with("CPU %", used.ran.as_secs_f64() / bench.idle.as_secs_f64() * 100.0)
        .with("sleeps/s", used.sleeps as f64 / bench.idle.as_secs_f64())
        .with("RSS MiB", used.resident_bytes as f64 / f64::from(1 << 20))
        .with("set-up s", set_up.as_secs_f64()))
}
