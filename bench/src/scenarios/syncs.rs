//! What each class of durability is worth: how often a side syncs while one client puts, one put at a time.
//!
//! With one put in flight nothing can be shared, so a side that acknowledges only what is synced makes at least one call a put. It runs
//! under `strace`, so nothing else is measured with it.

use serde_json::json;

use super::Bench;
use super::flow::{self, Flow};
use super::rounds::Rounds;
use crate::driver::{Load, Until};
use crate::failure::Outcome;
use crate::messages::PutShape;
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Live, Side, SyncCount, files_synced_by_writes};

const PARTITIONS: u16 = 8;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 1024 };
const PUTS: u64 = 200;

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    Ok(vec![measure(bench, Durability::Sync).await?, measure(bench, Durability::Async).await?])
}

async fn measure(bench: &Bench, durability: Durability) -> Outcome<ScenarioReport> {
    let name = format!("syncs, {}", durability.name());
    let mut rounds = Rounds::of(&name);
    rounds.begin();
    let sides = bench.places.sides_with(durability);
    for side in &sides {
        rounds.add(side.name(), count(*side, bench, durability).await)?;
    }
    let bound = match durability {
        Durability::Sync => Bound::AtLeast(1.0),
        Durability::Async => Bound::AtMost(0.5),
    };
    let goals: Vec<_> = sides.iter().map(|side| Goal { side: side.name(), figure: "syncs/put", over: None, bound }).collect();
    let settings = json!({ "durability": durability, "partitions": PARTITIONS, "clients": 1, "in_flight": 1, "puts": PUTS });
    Ok(ScenarioReport::new(&name, settings, rounds.rounds, rounds.failures, &goals))
}

async fn count(side: Side, bench: &Bench, durability: Durability) -> Outcome<Figures> {
    let load = Load { queues: 1, partitions: PARTITIONS, producers: 1, in_flight: 1, shape: SHAPE };
    let flow = Flow::closed(bench, load, durability);
    let mut live = Live::start(side, &bench.places, &flow.plan()).await?;
    let mut producers = live.producers(&flow.load).await?;
    // What is made at the beginning is made.
    let warm = producers.run(Until::Puts(u64::from(PARTITIONS))).await;
    let warm = live.explained(warm)?;
    flow::wait_all_taken(&live, warm.messages).await?;
    let syncs = SyncCount::attach(&live.running.ids(), &bench.places.data).await?;
    let puts = producers.run(Until::Puts(PUTS)).await;
    let puts = live.explained(puts)?;
    let syncs = syncs.detach()?;
    flow::wait_all_taken(&live, warm.messages + puts.messages).await?;
    Ok(Figures::default()
        .with("syncs/put", syncs as f64 / PUTS as f64)
        .with("puts", PUTS as f64)
        .with("syncs", syncs as f64)
        .with("files synced by writes", files_synced_by_writes(&live.running.ids()) as f64))
}
