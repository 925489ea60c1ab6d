//! A flow of messages through one side: put, stored, pushed, answered.

use std::time::{Duration, Instant};

use crate::driver::{Clock, Load, Producers, Receiver, Until};
use crate::failure::{Failure, Outcome};
use crate::messages::Ledger;
use crate::report::Figures;
use crate::scenarios::Bench;
use crate::setting::Durability;
use crate::sides::{Running, Setup, Side, Usage, machine_busy};

/// Who has used the cores.
#[derive(Clone, Copy, Debug)]
struct Busy {
    side: Usage,
    driver: Usage,
    machine: Duration,
}

impl Busy {
    fn now(running: &mut Running) -> Outcome<Self> {
        Ok(Self { side: running.process.usage()?, driver: Usage::of(std::process::id())?, machine: machine_busy()? })
    }

    fn since(self, before: Self) -> Self {
        Self {
            side: self.side.since(before.side),
            driver: self.driver.since(before.driver),
            machine: self.machine.saturating_sub(before.machine),
        }
    }

    /// Neither the side nor the driver: the kernel's own threads, and whatever else runs on the machine and disturbs.
    fn others(self) -> Duration {
        self.machine.saturating_sub(self.side.cpu).saturating_sub(self.driver.cpu)
    }
}

/// A message that does not come for so long is lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Lets the load run through a fresh process of the side, from the first put until the receiver has answered the last push.
pub(super) async fn measure(side: Side, bench: &Bench, load: &Load, durability: Durability) -> Outcome<Figures> {
    let (clock, dialect) = (Clock::start(), side.dialect());
    let ledger = Ledger::new(load.producers as usize, usize::from(load.all_partitions()));
    let receiver = Receiver::listen(bench.endpoints, dialect.clone(), ledger, clock).await?;
    let setup = Setup { durability, queues: load.queues, partitions: load.partitions, receivers: receiver.addresses().to_vec() };
    let mut running = side.start(&bench.places, &setup).await?;
    let mut producers = Producers::connect(running.address, &dialect, load, clock).await?;
    let warm = producers.run(Until::Time(Instant::now() + bench.warm_up)).await?;
    receiver.wait_taken(warm.messages, PATIENCE).await?;
    drop(receiver.ages());

    let (began, before) = (clock.now_ns(), Busy::now(&mut running)?);
    let mut puts = producers.run(Until::Time(Instant::now() + bench.time)).await?;
    let acknowledged = clock.now_ns();
    let drained = receiver.wait_taken(warm.messages + puts.messages, PATIENCE).await;
    running.process.check()?;
    drained?;
    let used = Busy::now(&mut running)?.since(before);
    let ended = receiver.answered_ns();

    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let (messages, whole) = (puts.messages as f64, seconds(began, ended));
    if messages == 0.0 || whole == 0.0 {
        return Err(Failure::Invalid("nothing was put".to_owned()));
    }
    let mut ages = receiver.ages();
    Ok(Figures::default()
        .with("msgs/s", messages / whole)
        .with("MB/s", puts.bytes as f64 / whole / 1e6)
        .maybe("put p50 us", puts.latencies.percentile_us(50.0))
        .maybe("put p99 us", puts.latencies.percentile_us(99.0))
        .maybe("age p50 us", ages.percentile_us(50.0))
        .maybe("age p99 us", ages.percentile_us(99.0))
        .with("CPU us/msg", used.side.cpu.as_secs_f64() * 1e6 / messages)
        .with("driver us/msg", used.driver.cpu.as_secs_f64() * 1e6 / messages)
        .with("others' cores", used.others().as_secs_f64() / whole)
        .with("sleeps/put", used.side.sleeps as f64 / puts.latencies.len() as f64)
        .with("drain s", seconds(acknowledged, ended))
        .with("repeated", receiver.repeated() as f64))
}
