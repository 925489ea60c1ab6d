//! A backlog that is replayed to one subscriber while another one gets what is new.

use std::time::Instant;

use serde_json::json;

use super::flow::{Flow, PATIENCE};
use super::rounds::Rounds;
use super::{Bench, goals};
use crate::driver::{Behaviour, Load, Pace, Until};
use crate::failure::{Failure, Outcome};
use crate::messages::PutShape;
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Live, Side};

const PARTITIONS: u16 = 8;
const PRODUCERS: u32 = 4;
/// Of the backlog.
const BULK: PutShape = PutShape { messages: 100, value_bytes: 1024 };
const SINGLE: PutShape = PutShape { messages: 1, value_bytes: 1024 };
const RATE: u32 = 5_000;

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let mut rounds = Rounds::of("catchup");
    let mut sides = bench.places.sides_with(Durability::Async);
    sides.retain(|side| side.has_subscribers(2) && *side != Side::Sdk);
    if bench.places.peers.contains(&crate::peers::Peer::RabbitMq) {
        // It has no other class; the backlog is read, not written.
        sides.push(Side::Peer(crate::peers::Peer::RabbitMq));
    }
    for _ in 0..bench.rounds {
        for side in rounds.begin_with(sides.clone()) {
            rounds.add(side.name(), measure(bench, side).await)?;
        }
    }
    let settings = json!({
        "durability": Durability::Async, "partitions": PARTITIONS, "producers": PRODUCERS, "live_messages_per_second": RATE,
        "backlog_bytes": bench.store_bytes, "value_bytes": SINGLE.value_bytes,
    });
    let mut wanted = vec![Goal::alone("live p99 over baseline", Bound::None)];
    wanted.extend(goals::over_peers(bench, &[("catch-up MB/s", Bound::AtLeast(1.5))]));
    Ok(vec![ScenarioReport::new("catchup", settings, rounds.rounds, rounds.failures, &wanted)])
}

async fn measure(bench: &Bench, side: Side) -> Outcome<Figures> {
    // Half of the producers make the backlog, the others what is new.
    let load = |producers, shape| Load { queues: 1, partitions: PARTITIONS, producers, in_flight: 4, shape };
    let all = Flow {
        load: load(2 * PRODUCERS, BULK),
        durability: Durability::Async,
        pace: Pace::Open(RATE),
        subscribers: 2,
        endpoints: bench.endpoints,
    };
    let mut live = Live::start(side, &bench.places, &all.plan()).await?;
    let [fresh, late] = live.intakes.as_slice() else {
        return Err(Failure::Side("not two subscribers".to_owned()));
    };
    let (fresh, late) = (fresh.clone(), late.clone());
    late.behave(Behaviour::Hold);
    let a_put = (BULK.messages * BULK.value_bytes) as u64;
    let mut bulk = live.producers(&load(PRODUCERS, BULK)).await?;
    let backlog = bulk.run(Until::Puts(bench.store_bytes / a_put / u64::from(PRODUCERS) + 1)).await;
    let backlog = live.explained(backlog)?;
    fresh.wait_taken(backlog.messages, PATIENCE).await?;

    let mut singles = live.producers_from(PRODUCERS, &load(PRODUCERS, SINGLE)).await?;
    drop(fresh.ages());
    let baseline = singles.run_at(Pace::Open(RATE), Until::Time(Instant::now() + bench.time)).await?;
    fresh.wait_taken(backlog.messages + baseline.messages, PATIENCE).await?;
    let mut calm = fresh.ages();

    let (began, held) = (Instant::now(), backlog.messages + baseline.messages);
    late.behave(Behaviour::Take);
    let drained = async {
        late.wait_taken(held, PATIENCE).await?;
        Ok::<_, Failure>(began.elapsed())
    };
    // What is new goes on until the backlog is gone.
    let (drained, during) = flow_until(drained, &mut singles).await?;
    live.running.check()?;
    for intake in [&fresh, &late] {
        intake.wait_taken(held + during, PATIENCE).await?;
    }
    let mut busy = fresh.ages();
    let bytes = (held * SINGLE.value_bytes as u64) as f64;
    let ratio = busy.percentile_us(99.0).zip(calm.percentile_us(99.0)).map(|(busy, calm)| busy / calm);
    let used = live.running.usage()?;
    Ok(Figures::default()
        .with("catch-up MB/s", bytes / drained / 1e6)
        .maybe("live p99 us", busy.percentile_us(99.0))
        .maybe("baseline p99 us", calm.percentile_us(99.0))
        .maybe("live p99 over baseline", ratio)
        .with("RSS MiB", used.resident_bytes as f64 / f64::from(1 << 20))
        .with("read/byte", used.disk_read_bytes as f64 / bytes)
        .with("live messages", during as f64))
}

/// Puts in short stretches until the work is done; its time in seconds, and how much was put meanwhile.
async fn flow_until(
    work: impl Future<Output = Outcome<std::time::Duration>>,
    producers: &mut crate::driver::Producers,
) -> Outcome<(f64, u64)> {
    let (done, mut is_done) = tokio::sync::watch::channel(false);
    let work = async {
        let time = work.await;
        done.send_replace(true);
        time
    };
    let puts = async {
        let mut messages = 0;
        while !*is_done.borrow_and_update() {
            let stretch = Until::Time(Instant::now() + std::time::Duration::from_millis(200));
            messages += producers.run_at(Pace::Open(RATE), stretch).await?.messages;
        }
        Ok::<_, Failure>(messages)
    };
    let (time, messages) = tokio::try_join!(work, puts)?;
    Ok((time.as_secs_f64(), messages))
}
