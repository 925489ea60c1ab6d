//! How long a broker with much data takes to serve again.

use std::time::Duration;

use serde_json::json;

use super::flow::PATIENCE;
use super::rounds::Rounds;
use super::{Bench, restart_peers};
use crate::driver::{Admin, Behaviour, Clock, Load, Producers, Receiver, Until};
use crate::failure::{Failure, Outcome};
use crate::messages::{Ledger, PutShape};
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Running, Setup, Side, queue_name, wait_for_port};

const PARTITIONS: u16 = 8;
const SHAPE: PutShape = PutShape { messages: 100, value_bytes: 1024 };
pub(super) const CRASH: &str = "crash";
pub(super) const ORDERLY: &str = "orderly";
/// Neither the log nor the index in memory.
pub(super) const COLD: &str = "cold";

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let (clock, dialect) = (Clock::start(), Side::HQueue.dialect());
    let receiver = Receiver::listen(1, dialect.clone(), Ledger::new(1, usize::from(PARTITIONS)), clock).await?;
    // It takes the first push and never answers, so that all of the data is ahead of the subscriber at every start.
    receiver.behave(Behaviour::Hold);
    let setup = Setup { durability: Durability::Async, queues: 1, partitions: PARTITIONS, subscribers: Vec::new() };
    let mut running = Side::HQueue.start(&bench.places, &setup).await?;
    fill(bench, &running, clock).await?;
    let mut admin = Admin::connect(running.address).await?;
    admin.subscribe(&queue_name(0), "receiver", Vec::new(), receiver.addresses()).await?;
    drop(admin);
    receiver.wait_arrived(1, PATIENCE).await?;

    let mut rounds = Rounds::of("restart");
    for _ in 0..bench.rounds {
        rounds.begin();
        for how in [CRASH, ORDERLY, COLD] {
            rounds.add(how, restart(bench, &mut running, &receiver, how, clock).await)?;
        }
    }
    drop(running);
    for peer in &bench.places.peers {
        restart_peers::run(bench, *peer, &mut rounds).await?;
    }
    let settings = json!({
        "stored_bytes": bench.store_bytes, "partitions": PARTITIONS, "value_bytes": SHAPE.value_bytes,
        "subscriber": "at the oldest message",
    });
    let goals: Vec<_> = [CRASH, ORDERLY, COLD]
        .into_iter()
        .flat_map(|side| ["put ms", "push ms"].map(|figure| Goal { side, figure, over: None, bound: Bound::AtMost(1000.0) }))
        .collect();
    Ok(vec![ScenarioReport::new("restart", settings, rounds.rounds, rounds.failures, &goals)])
}

async fn fill(bench: &Bench, running: &Running, clock: Clock) -> Outcome<()> {
    let dialect = Side::HQueue.dialect();
    let load = Load { queues: 1, partitions: PARTITIONS, producers: 4, in_flight: 4, shape: SHAPE };
    let a_put = (SHAPE.messages * SHAPE.value_bytes) as u64;
    let mut producers = Producers::connect(running.address, &dialect, &load, clock).await?;
    producers.run(Until::Puts(bench.store_bytes / a_put / u64::from(load.producers) + 1)).await.map(drop)
}

async fn restart(bench: &Bench, running: &mut Running, receiver: &Receiver, how: &str, clock: Clock) -> Outcome<Figures> {
    let pushes = receiver.arrived();
    match how {
        CRASH => running.restart(&bench.places, Durability::Async)?,
        ORDERLY => running.restart_in_order(&bench.places, Durability::Async).await?,
        _ => {
            running.process.stop().await?;
            drop_caches()?;
            running.restart(&bench.places, Durability::Async)?;
        }
    }
    let started = running.process.started;
    let push = async {
        receiver.wait_arrived(pushes + 1, PATIENCE).await?;
        Ok::<_, Failure>(started.elapsed())
    };
    let address = running.address;
    let put = async {
        wait_for_port(&mut running.process, address).await?;
        let open = started.elapsed();
        let dialect = Side::HQueue.dialect();
        let load = Load { queues: 1, partitions: PARTITIONS, producers: 1, in_flight: 1, shape: SHAPE };
        Producers::connect(address, &dialect, &load, clock).await?.run(Until::Puts(1)).await?;
        Ok::<_, Failure>((open, started.elapsed()))
    };
    let (push, (open, put)) = tokio::try_join!(push, put)?;
    Ok(Figures::default().with("open ms", millis(open)).with("put ms", millis(put)).with("push ms", millis(push)))
}

/// Lets the kernel forget all files. Needs root.
pub(super) fn drop_caches() -> Outcome<()> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3")
        .map_err(|error| Failure::Side(format!("the page cache cannot be emptied ({error}): no cold start")))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
