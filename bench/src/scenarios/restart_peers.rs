//! How long a peer with much data takes to serve again: the same as for HQueue, except that its subscriber connects anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Bench;
use super::flow::PATIENCE;
use super::restart::{COLD, CRASH, ORDERLY, drop_caches};
use super::rounds::Rounds;
use crate::driver::{Ages, Behaviour, Clock, Intake, Load, Producers, Until};
use crate::failure::{Failure, Outcome};
use crate::messages::{Ledger, PutShape};
use crate::peers::{self, Peer};
use crate::report::Figures;
use crate::setting::Durability;
use crate::sides::{Plan, Running};

const PARTITIONS: u16 = 8;
const SHAPE: PutShape = PutShape { messages: 100, value_bytes: 1024 };
const PRODUCERS: u32 = 4;

/// Adds the peer's figures to the first round: one restart of each kind, since filling takes long.
pub(super) async fn run(bench: &Bench, peer: Peer, rounds: &mut Rounds) -> Outcome<()> {
    let names = Names::of(peer);
    let durability = if peer == Peer::RabbitMq { Durability::Sync } else { Durability::Async };
    let load = Load { queues: 1, partitions: PARTITIONS, producers: PRODUCERS, in_flight: 4, shape: SHAPE };
    let plan = Plan { durability, load, subscribers: 1, endpoints: 1, ages: Ages::First };
    let mut running = match filled(bench, peer, &plan).await {
        Ok(running) => running,
        failed => return rounds.add(names.crash, failed.map(|_| Figures::default())),
    };
    for (name, how) in [(names.crash, CRASH), (names.orderly, ORDERLY), (names.cold, COLD)] {
        rounds.add(name, restart(bench, peer, &mut running, &plan, how).await)?;
    }
    Ok(())
}

/// What the rows are called.
struct Names {
    crash: &'static str,
    orderly: &'static str,
    cold: &'static str,
}

impl Names {
    const fn of(peer: Peer) -> Self {
        match peer {
            Peer::Kafka => Self { crash: "kafka crash", orderly: "kafka orderly", cold: "kafka cold" },
            Peer::Nats => Self { crash: "nats crash", orderly: "nats orderly", cold: "nats cold" },
            Peer::RabbitMq => Self { crash: "rabbitmq crash", orderly: "rabbitmq orderly", cold: "rabbitmq cold" },
            Peer::Redis => Self { crash: "redis crash", orderly: "redis orderly", cold: "redis cold" },
            Peer::RocketMq => Self { crash: "rocketmq crash", orderly: "rocketmq orderly", cold: "rocketmq cold" },
        }
    }
}

async fn filled(bench: &Bench, peer: Peer, plan: &Plan) -> Outcome<Running> {
    let (running, _unheard) = peers::start(peer, &bench.places, plan, &[]).await?;
    let a_put = (SHAPE.messages * SHAPE.value_bytes) as u64;
    let mut producers = connect(peer, &running, &plan.load, Clock::start()).await?;
    producers.run(Until::Puts(bench.store_bytes / a_put / u64::from(PRODUCERS) + 1)).await?;
    Ok(running)
}

async fn connect(peer: Peer, running: &Running, load: &Load, clock: Clock) -> Outcome<Producers> {
    let mut links = Vec::new();
    for _ in 0..load.producers {
        links.push(peers::connect(peer, running, load).await?);
    }
    Ok(Producers::over(links, 0, load, clock))
}

async fn restart(bench: &Bench, peer: Peer, running: &mut Running, plan: &Plan, how: &str) -> Outcome<Figures> {
    let forget = || if how == COLD { drop_caches() } else { Ok(()) };
    peers::restart(peer, &bench.places, running, plan, how != CRASH, forget).await?;
    let started = running.process.started;
    // It takes the first that comes and acknowledges nothing, so that all is ahead of it the next time.
    let intake = Arc::new(Intake::new(Ledger::new(1, usize::from(PARTITIONS)), Clock::start(), Ages::First));
    intake.behave(Behaviour::Hold);
    let _hearing = peers::listen_again(peer, running, plan, std::slice::from_ref(&intake)).await?;
    let push = async {
        intake.wait_arrived(1, PATIENCE).await?;
        Ok::<_, Failure>(started.elapsed())
    };
    let put = async {
        let load = Load { producers: 1, in_flight: 1, ..plan.load.clone() };
        let mut producers = first_connected(peer, running, &load).await?;
        producers.run(Until::Puts(1)).await?;
        Ok::<_, Failure>(started.elapsed())
    };
    let (push, put) = tokio::try_join!(push, put)?;
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    Ok(Figures::default().with("put ms", millis(put)).with("push ms", millis(push)))
}

async fn first_connected(peer: Peer, running: &Running, load: &Load) -> Outcome<Producers> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match connect(peer, running, load, Clock::start()).await {
            Ok(producers) => return Ok(producers),
            Err(failure) if Instant::now() > deadline => return Err(failure),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}
