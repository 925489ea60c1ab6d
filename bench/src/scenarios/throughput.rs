//! How much goes through.

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
const PRODUCERS: u32 = 4;
const IN_FLIGHT: usize = 4;

/// One size of message.
#[derive(Debug)]
pub(super) struct Size {
    name: &'static str,
    shape: PutShape,
    /// For the rate over the floor's.
    goal: Bound,
}

pub(super) const SMALL: Size =
    Size { name: "tput-100b", shape: PutShape { messages: 500, value_bytes: 100 }, goal: Bound::AtLeast(0.5) };
pub(super) const MEDIUM: Size =
    Size { name: "tput-1k", shape: PutShape { messages: 100, value_bytes: 1024 }, goal: Bound::AtLeast(0.6) };
pub(super) const LARGE: Size =
    Size { name: "tput-64k", shape: PutShape { messages: 4, value_bytes: 64 << 10 }, goal: Bound::AtLeast(0.6) };

/// Synced before the acknowledgement.
pub(super) async fn run(bench: &Bench, size: &Size) -> Outcome<Vec<ScenarioReport>> {
    Ok(vec![measure(bench, size, Durability::Sync).await?])
}

/// Acknowledged when written: all sizes.
pub(super) async fn run_async(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut reports = Vec::new();
    for size in [SMALL, MEDIUM, LARGE] {
        reports.push(measure(bench, &size, Durability::Async).await?);
    }
    Ok(reports)
}

async fn measure(bench: &Bench, size: &Size, durability: Durability) -> Outcome<ScenarioReport> {
    let load =
        Load { queues: bench.queues, partitions: PARTITIONS, producers: PRODUCERS, in_flight: IN_FLIGHT, shape: size.shape };
    let flow = Flow::closed(bench, load, durability);
    let queues = if bench.queues == 1 { String::new() } else { format!(", {} queues", bench.queues) };
    let name = format!("{}, {}{queues}", size.name, durability.name());
    let mut rounds = Rounds::of(&name);
    for _ in 0..bench.rounds {
        for side in rounds.begin_with(bench.places.sides_with(durability)) {
            rounds.add(side.name(), flow::measure(side, bench, &flow).await)?;
        }
    }
    let settings = json!({
        "durability": durability, "partitions": PARTITIONS, "producers": PRODUCERS, "in_flight": IN_FLIGHT,
        "messages_a_put": size.shape.messages, "value_bytes": size.shape.value_bytes,
        "seconds": bench.time.as_secs_f64(), "endpoints": bench.endpoints, "queues": bench.queues,
    });
    let mut wanted =
        vec![Goal::over_floor("msgs/s", size.goal), Goal::over_floor("CPU us/msg", Bound::None), Goal::over_other("msgs/s")];
    wanted.extend(goals::over_peers(bench, &[("msgs/s", Bound::AtLeast(1.5)), ("CPU us/msg", Bound::None)]));
    Ok(ScenarioReport::new(&name, settings, rounds.rounds, rounds.failures, &wanted))
}
