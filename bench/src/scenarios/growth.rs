//! How what it costs grows: with subscribers, with partitions, with what is stored.

use serde_json::json;

use super::Bench;
use super::flow::{self, Flow};
use super::rounds::Rounds;
use crate::driver::{Load, Pace, Until};
use crate::failure::Outcome;
use crate::messages::PutShape;
use crate::report::{Figures, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Live, Side};

const PRODUCERS: u32 = 1;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 1024 };
const BULK: PutShape = PutShape { messages: 100, value_bytes: 1024 };

/// What grows: its steps, and the last step of the peers, whose set-up takes minutes beyond it.
struct Axis {
    name: &'static str,
    steps: &'static [u32],
    peers_up_to: u32,
    /// Messages a second.
    rate: u32,
}

const SUBSCRIBERS: Axis = Axis { name: "subscribers", steps: &[1, 10, 100, 1000], peers_up_to: 100, rate: 50 };
const PARTITIONS: Axis = Axis { name: "partitions", steps: &[1, 10, 100, 1000, 10_000], peers_up_to: 1000, rate: 1000 };
/// In tenths of what `--store-gib` says.
const BACKLOG: Axis = Axis { name: "backlog", steps: &[0, 1, 5, 10], peers_up_to: 10, rate: 1000 };

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut reports = Vec::new();
    for axis in [SUBSCRIBERS, PARTITIONS, BACKLOG] {
        for step in axis.steps {
            reports.push(measure(bench, &axis, *step).await?);
        }
    }
    Ok(reports)
}

async fn measure(bench: &Bench, axis: &Axis, step: u32) -> Outcome<ScenarioReport> {
    let name = format!("growth, {step} {}", axis.name);
    let mut rounds = Rounds::of(&name);
    // One round: it is the shape of the line that counts.
    rounds.begin();
    for side in bench.places.sides_with(Durability::Sync) {
        let possible = match side {
            Side::Floor | Side::Sdk | Side::Other => false,
            Side::Peer(_) => step <= axis.peers_up_to,
            Side::HQueue | Side::InHBase => true,
        };
        if possible {
            rounds.add(side.name(), at(bench, side, axis, step).await)?;
        }
    }
    let settings = json!({
        "axis": axis.name, "step": step, "messages_per_second": axis.rate, "value_bytes": SHAPE.value_bytes,
        "durability": Durability::Sync, "store_bytes": bench.store_bytes, "seconds": bench.time.as_secs_f64(),
    });
    Ok(ScenarioReport::new(&name, settings, rounds.rounds, rounds.failures, &[]))
}

async fn at(bench: &Bench, side: Side, axis: &Axis, step: u32) -> Outcome<Figures> {
    let is = |name| axis.name == name;
    let partitions = if is("partitions") { u16::try_from(step).unwrap_or(u16::MAX) } else { 8 };
    let subscribers = if is("subscribers") { step as usize } else { 1 };
    let load = |producers, shape| Load { queues: 1, partitions, producers, in_flight: 4, shape };
    let pace = Pace::Open(axis.rate);
    let flow = Flow { load: load(2 * PRODUCERS, SHAPE), durability: Durability::Sync, pace, subscribers, endpoints: 1 };
    let mut live = Live::start(side, &bench.places, &flow.plan()).await?;
    let mut before = 0;
    if is("backlog") && step > 0 {
        // It was all taken: what is stored, and not what is behind.
        let a_put = (BULK.messages * BULK.value_bytes) as u64;
        let mut bulk = live.producers(&load(PRODUCERS, BULK)).await?;
        before = bulk.run(Until::Puts(bench.store_bytes * u64::from(step) / 10 / a_put)).await?.messages;
    }
    let mut producers = live.producers_from(PRODUCERS, &load(PRODUCERS, SHAPE)).await?;
    // Every partition once, so that all of it is in use.
    before += producers.run(Until::Puts(u64::from(partitions))).await?.messages;
    flow::wait_all_taken(&live, before).await?;
    flow::steady(&mut live, &mut producers, bench, &flow, before).await
}
