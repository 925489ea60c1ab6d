//! How long a put of one message takes, and how many of them are taken together.

use serde_json::json;

use super::flow::{self, Flow};
use super::rounds::Rounds;
use super::{Bench, goals};
use crate::driver::Load;
use crate::failure::Outcome;
use crate::messages::PutShape;
use crate::report::{Bound, Goal, ScenarioReport};
use crate::setting::Durability;

const PARTITIONS: u16 = 8;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 1024 };

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut alone = vec![
        Goal::over_floor("put p50 us", Bound::AtMost(1.3)),
        Goal::over_floor("put p99 us", Bound::None),
        Goal::over_other("put p50 us"),
    ];
    let mut many = vec![
        Goal::over_floor("put p50 us", Bound::AtMost(1.3)),
        Goal::over_floor("msgs/s", Bound::AtLeast(0.7)),
        Goal::over_floor("CPU us/msg", Bound::None),
        Goal::over_other("msgs/s"),
    ];
    let peers = goals::over_peers(bench, &[("put p50 us", Bound::AtMost(1.0)), ("put p99 us", Bound::None)]);
    alone.extend(peers.clone());
    many.extend(peers);
    Ok(vec![measure(bench, "put-lat, 1 client", 1, &alone).await?, measure(bench, "put-lat, 64 clients", 64, &many).await?])
}

async fn measure(bench: &Bench, name: &str, clients: u32, goals: &[Goal]) -> Outcome<ScenarioReport> {
    let load = Load { queues: 1, partitions: PARTITIONS, producers: clients, in_flight: 1, shape: SHAPE };
    let flow = Flow::closed(bench, load, Durability::Sync);
    let mut rounds = Rounds::of(name);
    for _ in 0..bench.rounds {
        for side in rounds.begin_with(bench.places.sides_with(Durability::Sync)) {
            rounds.add(side.name(), flow::measure(side, bench, &flow).await)?;
        }
    }
    let settings = json!({
        "durability": Durability::Sync, "partitions": PARTITIONS, "clients": clients, "value_bytes": SHAPE.value_bytes,
        "seconds": bench.time.as_secs_f64(), "endpoints": bench.endpoints,
    });
    Ok(ScenarioReport::new(name, settings, rounds.rounds, rounds.failures, goals))
}
