//! From a put to its push while nothing else happens, against a bare call over the loopback.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Bench;
use super::flow::PATIENCE;
use super::rounds::Rounds;
use crate::driver::{Clock, Frames, Latencies, Load, Producers, Receiver, Until};
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::{Ledger, PutShape, Stamp};
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Process, Setup, Side, free_port, queue_name, wait_for_port};

const PARTITIONS: u16 = 8;
const SHAPE: PutShape = PutShape { messages: 1, value_bytes: 1024 };
/// Between two puts, so that everything sleeps when the next one comes.
const PAUSE: Duration = Duration::from_millis(5);
const LOOPBACK: &str = "loopback";
/// Not measured: connections are made, code comes into the caches.
const WARM_UP: u64 = 50;

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let count = u64::try_from(bench.time.as_millis() / PAUSE.as_millis()).unwrap_or(u64::MAX).max(1);
    let mut rounds = Rounds::of("push-lat");
    for _ in 0..bench.rounds {
        rounds.begin();
        rounds.add(LOOPBACK, bare_calls(bench, count).await)?;
        for side in bench.places.own_sides() {
            rounds.add(side.name(), pushes(side, bench, count).await)?;
        }
    }
    let settings = json!({
        "durability": Durability::Async, "partitions": PARTITIONS, "value_bytes": SHAPE.value_bytes, "puts": count,
        "pause_ms": PAUSE.as_secs_f64() * 1000.0,
    });
    let goals = [
        Goal { side: "hqueue", figure: "p50 us", over: Some((LOOPBACK, "p50 us")), bound: Bound::AtMost(3.0) },
        Goal { side: "floor", figure: "p50 us", over: Some((LOOPBACK, "p50 us")), bound: Bound::None },
        Goal::over_floor("p50 us", Bound::None),
        Goal::over_other("p50 us"),
    ];
    Ok(vec![ScenarioReport::new("push-lat", settings, rounds.rounds, rounds.failures, &goals)])
}

fn figures(mut latencies: Latencies) -> Figures {
    Figures::default().maybe("p50 us", latencies.percentile_us(50.0)).maybe("p99 us", latencies.percentile_us(99.0))
}

async fn pushes(side: Side, bench: &Bench, count: u64) -> Outcome<Figures> {
    let (clock, dialect) = (Clock::start(), side.dialect());
    let load = Load { queues: 1, partitions: PARTITIONS, producers: 1, in_flight: 1, shape: SHAPE };
    let receiver = Receiver::listen(1, dialect.clone(), Ledger::new(1, usize::from(PARTITIONS)), clock).await?;
    let setup = Setup {
        durability: Durability::Async,
        queues: 1,
        partitions: PARTITIONS,
        subscribers: vec![receiver.addresses().to_vec()],
    };
    let mut running = side.start(&bench.places, &setup).await?;
    let mut producers = Producers::connect(running.address, &dialect, &load, clock).await?;
    let mut answers = Latencies::default();
    for number in 1..=WARM_UP + count {
        if number == WARM_UP + 1 {
            drop(receiver.ages());
            answers = Latencies::default();
        }
        answers.extend(producers.run(Until::Puts(1)).await?.latencies);
        receiver.wait_taken(number, PATIENCE).await?;
        tokio::time::sleep(PAUSE).await;
    }
    running.process.check()?;
    let figures = figures(receiver.ages());
    Ok(figures.maybe("put p50 us", answers.percentile_us(50.0)).maybe("put p99 us", answers.percentile_us(99.0)))
}

/// The same message to a process that answers at once.
async fn bare_calls(bench: &Bench, count: u64) -> Outcome<Figures> {
    let address = free_port()?;
    let args: [OsString; 3] = ["echo".into(), "--listen".into(), address.to_string().into()];
    let args: Vec<_> = args.iter().map(OsString::as_os_str).collect();
    let mut process = Process::start(&bench.places.bench, &args, bench.places.data.join("echo.out"))?;
    let calls = call_often(&mut process, address, count).await;
    process.kill()?;
    calls.map(figures)
}

async fn call_often(process: &mut Process, address: std::net::SocketAddr, count: u64) -> Outcome<Latencies> {
    wait_for_port(process, address).await?;
    let socket = TcpStream::connect(address).await.doing(|| format!("connecting to {address}"))?;
    socket.set_nodelay(true).doing(|| "setting up a connection".to_owned())?;
    let (reader, mut writer) = socket.into_split();
    let (clock, mut frames) = (Clock::start(), Frames::new(reader));
    let mut template = Side::HQueue.dialect().put(&queue_name(0), SHAPE);
    let mut latencies = Latencies::default();
    for number in 0..WARM_UP + count {
        let sent_ns = clock.now_ns();
        let call = template.stamped(0, Stamp { producer: 0, partition: 0, number, sent_ns });
        writer.write_all(call).await.doing(|| "calling the echo".to_owned())?;
        if !frames.next().await.doing(|| "reading the echo".to_owned())? {
            return Err(Failure::Side("the echo has ended".to_owned()));
        }
        if number >= WARM_UP {
            latencies.note(clock.now_ns().saturating_sub(sent_ns));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(latencies)
}
