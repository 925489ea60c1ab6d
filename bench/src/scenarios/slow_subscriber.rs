//! What a slow subscriber, and one that never answers, do to the others.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Bench;
use super::flow::{Flow, PATIENCE};
use super::rounds::Rounds;
use crate::driver::{Behaviour, Latencies, Load, Pace, Until};
use crate::failure::Outcome;
use crate::messages::PutShape;
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Live, Side};

const PARTITIONS: u16 = 8;
const PRODUCERS: u32 = 4;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 1024 };
const RATE: u32 = 5_000;
const SUBSCRIBERS: usize = 4;
/// The ones that behave; one of the others answers a call a second and partition, one never.
const OTHERS: usize = 2;

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut rounds = Rounds::of("slow-sub");
    let mut sides = bench.places.sides_with(Durability::Sync);
    // The library's listeners cannot be slow without holding up the driver.
    sides.retain(|side| side.has_subscribers(SUBSCRIBERS) && *side != Side::Sdk);
    for _ in 0..bench.rounds {
        for side in rounds.begin_with(sides.clone()) {
            rounds.add(side.name(), measure(bench, side).await)?;
        }
    }
    let settings = json!({
        "durability": Durability::Sync, "partitions": PARTITIONS, "producers": PRODUCERS, "messages_per_second": RATE,
        "value_bytes": SHAPE.value_bytes, "subscribers": SUBSCRIBERS, "seconds": bench.time.as_secs_f64(),
        "slow": "one takes a second for each call, one never answers",
    });
    let wanted: Vec<_> = sides
        .iter()
        .map(|side| {
            let bound = if *side == Side::HQueue { Bound::AtMost(1.2) } else { Bound::None };
            Goal { side: side.name(), figure: "p99 over baseline", over: None, bound }
        })
        .collect();
    Ok(vec![ScenarioReport::new("slow-sub", settings, rounds.rounds, rounds.failures, &wanted)])
}

async fn measure(bench: &Bench, side: Side) -> Outcome<Figures> {
    let (mut baseline, calm) = others(bench, side, &[]).await?;
    let slow = [Behaviour::Slow(Duration::from_secs(1)), Behaviour::Hold];
    let (mut beside, busy) = others(bench, side, &slow).await?;
    let ratio = beside.percentile_us(99.0).zip(baseline.percentile_us(99.0)).map(|(beside, baseline)| beside / baseline);
    Ok(Figures::default()
        .maybe("p99 over baseline", ratio)
        .maybe("p50 us", beside.percentile_us(50.0))
        .maybe("p99 us", beside.percentile_us(99.0))
        .maybe("baseline p50 us", baseline.percentile_us(50.0))
        .maybe("baseline p99 us", baseline.percentile_us(99.0))
        .with("RSS MiB", busy)
        .with("baseline RSS MiB", calm))
}

/// The ages at the first two subscribers while the others behave as told, and the side's memory at the end.
async fn others(bench: &Bench, side: Side, behaviours: &[Behaviour]) -> Outcome<(Latencies, f64)> {
    let load = Load { queues: 1, partitions: PARTITIONS, producers: PRODUCERS, in_flight: 1, shape: SHAPE };
    let flow = Flow { load, durability: Durability::Sync, pace: Pace::Open(RATE), subscribers: SUBSCRIBERS, endpoints: 1 };
    let mut live = Live::start(side, &bench.places, &flow.plan()).await?;
    for (intake, behaviour) in live.intakes.iter().skip(OTHERS).zip(behaviours) {
        intake.behave(*behaviour);
    }
    let mut producers = live.producers(&flow.load).await?;
    let warm = producers.run_at(flow.pace, Until::Time(Instant::now() + bench.warm_up)).await;
    let warm = live.explained(warm)?;
    let mut messages = warm.messages;
    let others: Vec<_> = live.intakes.iter().take(OTHERS).cloned().collect();
    for intake in &others {
        intake.wait_taken(messages, PATIENCE).await?;
        drop(intake.ages());
    }
    let puts = producers.run_at(flow.pace, flow.until(bench, bench.time)).await;
    messages += live.explained(puts)?.messages;
    let mut ages = Latencies::default();
    for intake in &others {
        intake.wait_taken(messages, PATIENCE).await?;
        ages.extend(intake.ages());
    }
    live.running.check()?;
    Ok((ages, live.running.usage()?.resident_bytes as f64 / f64::from(1 << 20)))
}
