//! How often and how much the broker allocates for a message, on its way in and out.

use std::time::Instant;

use serde_json::json;

use super::Bench;
use super::flow::PATIENCE;
use super::rounds::Rounds;
use crate::driver::{Clock, Load, Producers, Receiver, Until};
use crate::failure::Outcome;
use crate::messages::{Ledger, PutShape};
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Counted, Setup, Side};

const PARTITIONS: u16 = 8;
const SHAPES: [PutShape; 3] = [
    PutShape { messages: 500, value_bytes: 100 },
    PutShape { messages: 100, value_bytes: 1024 },
    PutShape { messages: 4, value_bytes: 64 << 10 },
];

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut reports = Vec::new();
    for shape in SHAPES {
        let mut rounds = Rounds::of("allocations");
        for _ in 0..bench.rounds {
            rounds.begin();
            rounds.add(Side::HQueue.name(), measure(bench, shape).await)?;
        }
        let settings = json!({
            "partitions": PARTITIONS, "messages_a_put": shape.messages, "value_bytes": shape.value_bytes, "subscribers": 1,
        });
        let goals = [
            Goal::alone("allocations/msg", Bound::None),
            Goal::alone("allocations/put", Bound::None),
            Goal::alone("bytes/value byte", Bound::None),
        ];
        let name = format!("allocations, {} x {} B", shape.messages, shape.value_bytes);
        reports.push(ScenarioReport::new(&name, settings, rounds.rounds, rounds.failures, &goals));
    }
    Ok(reports)
}

async fn measure(bench: &Bench, shape: PutShape) -> Outcome<Figures> {
    let (clock, dialect) = (Clock::start(), Side::HQueue.dialect());
    let load = Load { queues: 1, partitions: PARTITIONS, producers: 4, in_flight: 4, shape };
    let receiver = Receiver::listen(1, dialect.clone(), Ledger::new(4, usize::from(PARTITIONS)), clock).await?;
    let setup = Setup {
        durability: Durability::Sync,
        queues: 1,
        partitions: PARTITIONS,
        subscribers: vec![receiver.addresses().to_vec()],
    };
    let mut broker = Counted::start(&bench.places, &setup).await?;
    let mut producers = Producers::connect(broker.address, &dialect, &load, clock).await?;
    let warm = producers.run(Until::Time(Instant::now() + bench.warm_up)).await?;
    receiver.wait_taken(warm.messages, PATIENCE).await?;
    let before = broker.ask()?;
    let puts = producers.run(Until::Time(Instant::now() + bench.time)).await?;
    receiver.wait_taken(warm.messages + puts.messages, PATIENCE).await?;
    let after = broker.ask()?;
    let (messages, count) = (puts.messages as f64, puts.latencies.len() as f64);
    let allocations = (after.allocations - before.allocations) as f64;
    let bytes = (after.bytes - before.bytes) as f64;
    Ok(Figures::default()
        .with("allocations/msg", allocations / messages)
        .with("allocations/put", allocations / count)
        .with("growths/put", (after.reallocations - before.reallocations) as f64 / count)
        .with("bytes/msg", bytes / messages)
        .with("bytes/value byte", bytes / puts.bytes as f64))
}
