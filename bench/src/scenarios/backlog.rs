//! Memory while a backlog grows and while it drains.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Bench;
use super::flow::PATIENCE;
use super::rounds::Rounds;
use crate::driver::{Behaviour, Clock, Load, Producers, Receiver, Until};
use crate::failure::Outcome;
use crate::messages::{Ledger, PutShape};
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Process, Setup, Side};

const PARTITIONS: u16 = 8;
const SHAPE: PutShape = PutShape { messages: 100, value_bytes: 1024 };
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut rounds = Rounds::of("backlog");
    for _ in 0..bench.rounds {
        rounds.begin();
        rounds.add(Side::HQueue.name(), measure(bench).await)?;
    }
    let settings = json!({ "backlog_bytes": bench.store_bytes, "partitions": PARTITIONS, "value_bytes": SHAPE.value_bytes });
    let goals = [
        Goal::alone("fill MiB", Bound::AtMost(400.0)),
        Goal::alone("drain MiB", Bound::AtMost(400.0)),
        Goal::alone("drain MB/s", Bound::None),
    ];
    Ok(vec![ScenarioReport::new("backlog", settings, rounds.rounds, rounds.failures, &goals)])
}

async fn measure(bench: &Bench) -> Outcome<Figures> {
    let (clock, dialect) = (Clock::start(), Side::HQueue.dialect());
    let load = Load { queues: 1, partitions: PARTITIONS, producers: 4, in_flight: 4, shape: SHAPE };
    let receiver = Receiver::listen(1, dialect.clone(), Ledger::new(4, usize::from(PARTITIONS)), clock).await?;
    receiver.behave(Behaviour::Hold);
    let setup = Setup {
        durability: Durability::Async,
        queues: 1,
        partitions: PARTITIONS,
        subscribers: vec![receiver.addresses().to_vec()],
    };
    let mut running = Side::HQueue.start(&bench.places, &setup).await?;
    let empty = running.process.usage()?.resident_bytes;
    let a_put = (SHAPE.messages * SHAPE.value_bytes) as u64;
    let mut producers = Producers::connect(running.address, &dialect, &load, clock).await?;
    let until = Until::Puts(bench.store_bytes / a_put / u64::from(load.producers) + 1);

    let began = Instant::now();
    let (puts, while_filling) = with_peak(&mut running.process, producers.run(until)).await?;
    let fill = began.elapsed();
    receiver.behave(Behaviour::Take);
    let began = Instant::now();
    let ((), while_draining) = with_peak(&mut running.process, receiver.wait_taken(puts.messages, PATIENCE)).await?;
    let drain = began.elapsed();
    let used = running.process.usage()?;
    let rate = |time: Duration| puts.bytes as f64 / time.as_secs_f64() / 1e6;
    Ok(Figures::default()
        .with("empty MiB", mib(empty))
        .with("fill MiB", mib(while_filling))
        .with("drain MiB", mib(while_draining))
        .with("fill MB/s", rate(fill))
        .with("drain MB/s", rate(drain))
        .with("written/byte", used.disk_written_bytes as f64 / puts.bytes as f64)
        .with("repeated", receiver.repeated() as f64))
}

/// Runs `work`; the most resident bytes of the process meanwhile.
async fn with_peak<T>(process: &mut Process, work: impl Future<Output = Outcome<T>>) -> Outcome<(T, u64)> {
    let mut peak = 0;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok((done?, peak.max(process.usage()?.resident_bytes))),
            () = tokio::time::sleep(LOOK) => peak = peak.max(process.usage()?.resident_bytes),
        }
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
