//! How old messages are when they arrive, while they come by a schedule.

use serde_json::json;

use super::flow::{self, Flow};
use super::rounds::Rounds;
use super::{Bench, goals};
use crate::driver::{Load, Pace};
use crate::failure::Outcome;
use crate::messages::PutShape;
use crate::report::{Bound, Goal, ScenarioReport};
use crate::setting::Durability;

const PARTITIONS: u16 = 8;
const PRODUCERS: u32 = 4;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 1024 };
const RATES: [u32; 3] = [1_000, 5_000, 20_000];

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut reports = Vec::new();
    for durability in [Durability::Sync, Durability::Async] {
        for rate in RATES {
            reports.push(measure(bench, rate, durability).await?);
        }
    }
    Ok(reports)
}

async fn measure(bench: &Bench, rate: u32, durability: Durability) -> Outcome<ScenarioReport> {
    let load = Load { queues: 1, partitions: PARTITIONS, producers: PRODUCERS, in_flight: 1, shape: SHAPE };
    let flow = Flow { load, durability, pace: Pace::Open(rate), subscribers: 1, endpoints: bench.endpoints };
    let name = format!("e2e-fixed, {rate}/s, {}", durability.name());
    let mut rounds = Rounds::of(&name);
    for _ in 0..bench.rounds {
        for side in rounds.begin_with(bench.places.sides_with(durability)) {
            rounds.add(side.name(), flow::measure(side, bench, &flow).await)?;
        }
    }
    let settings = json!({
        "durability": durability, "partitions": PARTITIONS, "producers": PRODUCERS, "messages_per_second": rate,
        "value_bytes": SHAPE.value_bytes, "seconds": bench.time.as_secs_f64(), "endpoints": bench.endpoints,
    });
    let bound = match durability {
        Durability::Sync => Bound::AtMost(0.5),
        Durability::Async => Bound::AtMost(1.0),
    };
    let mut wanted = vec![Goal::over_floor("age p99 us", Bound::AtMost(2.0)), Goal::over_floor("age p50 us", Bound::None)];
    wanted.extend(goals::over_peers(bench, &[("age p99 us", bound), ("age p50 us", Bound::None), ("age p99.9 us", Bound::None)]));
    Ok(ScenarioReport::new(&name, settings, rounds.rounds, rounds.failures, &wanted))
}
