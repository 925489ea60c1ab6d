//! What one more subscriber of everything costs.

use serde_json::json;

use super::flow::{self, Flow};
use super::rounds::Rounds;
use super::{Bench, goals};
use crate::driver::{Load, Pace};
use crate::failure::Outcome;
use crate::messages::PutShape;
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::Side;

const PARTITIONS: u16 = 8;
const PRODUCERS: u32 = 4;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 1024 };
const RATE: u32 = 5_000;
const SUBSCRIBERS: [usize; 5] = [1, 2, 4, 8, 16];

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut rounds = Rounds::of("fanout");
    let mut sides = bench.places.sides_with(Durability::Sync);
    sides.retain(|side| side.has_subscribers(2));
    for _ in 0..bench.rounds {
        for side in rounds.begin_with(sides.clone()) {
            rounds.add(side.name(), measure(bench, side).await)?;
        }
    }
    let settings = json!({
        "durability": Durability::Sync, "partitions": PARTITIONS, "producers": PRODUCERS, "messages_per_second": RATE,
        "value_bytes": SHAPE.value_bytes, "subscribers": SUBSCRIBERS, "seconds": bench.time.as_secs_f64(),
    });
    let mut wanted = vec![Goal::alone("read/byte", Bound::AtMost(0.0))];
    wanted.extend(goals::over_peers(bench, &[("added us", Bound::AtMost(0.5))]));
    Ok(vec![ScenarioReport::new("fanout", settings, rounds.rounds, rounds.failures, &wanted)])
}

async fn measure(bench: &Bench, side: Side) -> Outcome<Figures> {
    let load = Load { queues: 1, partitions: PARTITIONS, producers: PRODUCERS, in_flight: 1, shape: SHAPE };
    let mut flow = Flow { load, durability: Durability::Sync, pace: Pace::Open(RATE), subscribers: 1, endpoints: 1 };
    let (mut points, mut steps, mut read): (Vec<(f64, f64)>, Figures, f64) = (Vec::new(), Figures::default(), 0.0);
    for subscribers in SUBSCRIBERS {
        flow.subscribers = subscribers;
        let figures = flow::measure(side, bench, &flow).await?;
        let cpu = figures.get("CPU us/msg").unwrap_or_default();
        points.push((subscribers as f64, cpu));
        read = read.max(figures.get("read/byte").unwrap_or_default());
        steps = steps.with(&format!("CPU us/msg at {subscribers}"), cpu);
        steps = steps.maybe(&format!("age p99 us at {subscribers}"), figures.get("age p99 us"));
    }
    let steps =
        steps.iter().fold(Figures::default().with("added us", slope(&points)).with("read/byte", read), |all, (name, value)| {
            all.with(name, value)
        });
    Ok(steps)
}

/// The steepness of the line that fits the points best.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let rise: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let run: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    rise / run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_a_line_is_its_own() {
        assert!((slope(&[(1.0, 5.0), (2.0, 8.0), (4.0, 14.0)]) - 3.0).abs() < 1e-9);
    }
}
