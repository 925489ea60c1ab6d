//! A flow of messages through one side: put, stored, pushed or fetched, acknowledged by the consumers.

use std::time::{Duration, Instant};

use crate::driver::{Ages, Latencies, Load, Pace, Producers, Puts, Until};
use crate::failure::{Failure, Outcome};
use crate::report::Figures;
use crate::scenarios::Bench;
use crate::setting::Durability;
use crate::sides::{Live, Plan, Running, Side, Usage, machine_busy};

/// Who has used the cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) side: Usage,
    pub(super) driver: Usage,
    machine: Duration,
}

impl Busy {
    pub(super) fn now(running: &mut Running) -> Outcome<Self> {
        let (clients, own) = (running.client_usage()?, Usage::of(std::process::id())?);
        Ok(Self { side: running.usage()?, driver: own.and(clients), machine: machine_busy()? })
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            side: self.side.since(before.side),
            driver: self.driver.since(before.driver),
            machine: self.machine.saturating_sub(before.machine),
        }
    }

    /// Neither the side nor the driver: the kernel's own threads, and whatever else runs on the machine and disturbs.
    pub(super) fn others(self) -> Duration {
        self.machine.saturating_sub(self.side.cpu).saturating_sub(self.driver.cpu)
    }
}

/// A message that does not come for so long is lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What flows.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) load: Load,
    pub(super) durability: Durability,
    pub(super) pace: Pace,
    pub(super) subscribers: usize,
    /// Ports of each subscriber, where a side pushes to ports.
    pub(super) endpoints: usize,
}

impl Flow {
    /// As fast as answers come, to one subscriber.
    pub(super) fn closed(bench: &Bench, load: Load, durability: Durability) -> Self {
        Self { load, durability, pace: Pace::Closed, subscribers: 1, endpoints: bench.endpoints }
    }

    pub(super) fn plan(&self) -> Plan {
        let ages = match self.pace {
            Pace::Closed => Ages::First,
            Pace::Open(_) => Ages::Every,
        };
        Plan {
            durability: self.durability,
            load: self.load.clone(),
            subscribers: self.subscribers,
            endpoints: self.endpoints,
            ages,
        }
    }

    /// How long the producers run.
    pub(super) fn until(&self, bench: &Bench, time: Duration) -> Until {
        match bench.puts {
            Some(puts) => Until::Puts(puts.div_ceil(u64::from(self.load.producers))),
            None => Until::Time(Instant::now() + time),
        }
    }
}

/// Lets the load run through fresh processes of the side, from the first put until the last subscriber has acknowledged the last message.
pub(super) async fn measure(side: Side, bench: &Bench, flow: &Flow) -> Outcome<Figures> {
    let mut live = Live::start(side, &bench.places, &flow.plan()).await?;
    let mut producers = live.producers(&flow.load).await?;
    let warm = producers.run_at(flow.pace, flow.until(bench, bench.warm_up)).await;
    let warm = live.explained(warm)?;
    wait_all_taken(&live, warm.messages).await?;
    steady(&mut live, &mut producers, bench, flow, warm.messages).await
}

/// Measures a flow through a side that was warmed up with so many messages.
pub(super) async fn steady(
    live: &mut Live,
    producers: &mut Producers,
    bench: &Bench,
    flow: &Flow,
    before: u64,
) -> Outcome<Figures> {
    for intake in &live.intakes {
        drop(intake.ages());
    }
    let clock = live.clock();
    let (began, busy) = (clock.now_ns(), Busy::now(&mut live.running)?);
    let puts = producers.run_at(flow.pace, flow.until(bench, bench.time)).await;
    let puts = live.explained(puts)?;
    let acknowledged = clock.now_ns();
    let drained = wait_all_taken(live, before + puts.messages).await;
    live.running.check()?;
    drained?;
    let used = Busy::now(&mut live.running)?.since(busy);
    let ended = live.intakes.iter().map(|intake| intake.answered_ns()).max().unwrap_or(0);
    figures(live, puts, used, Times { began, acknowledged, ended })
}

/// Waits until every subscriber has acknowledged so many messages.
pub(super) async fn wait_all_taken(live: &Live, messages: u64) -> Outcome<()> {
    for intake in &live.intakes {
        intake.wait_taken(messages, PATIENCE).await?;
    }
    Ok(())
}

/// When what happened, by the driver's clock.
#[derive(Clone, Copy, Debug)]
struct Times {
    began: u64,
    acknowledged: u64,
    ended: u64,
}

fn figures(live: &Live, mut puts: Puts, used: Busy, times: Times) -> Outcome<Figures> {
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let (messages, whole) = (puts.messages as f64, seconds(times.began, times.ended));
    if messages == 0.0 || whole == 0.0 {
        return Err(Failure::Invalid("nothing was put".to_owned()));
    }
    let mut ages = Latencies::default();
    for intake in &live.intakes {
        ages.extend(intake.ages());
    }
    let repeated: u64 = live.intakes.iter().map(|intake| intake.repeated()).sum();
    Ok(Figures::default()
        .with("msgs/s", messages / whole)
        .with("MB/s", puts.bytes as f64 / whole / 1e6)
        .maybe("put p50 us", puts.latencies.percentile_us(50.0))
        .maybe("put p99 us", puts.latencies.percentile_us(99.0))
        .maybe("put p99.9 us", puts.latencies.percentile_us(99.9))
        .maybe("age p50 us", ages.percentile_us(50.0))
        .maybe("age p99 us", ages.percentile_us(99.0))
        .maybe("age p99.9 us", ages.percentile_us(99.9))
        .with("CPU us/msg", used.side.cpu.as_secs_f64() * 1e6 / messages)
        .with("driver us/msg", used.driver.cpu.as_secs_f64() * 1e6 / messages)
        .with("others' cores", used.others().as_secs_f64() / whole)
        .with("sleeps/put", used.side.sleeps as f64 / puts.latencies.len() as f64)
        .with("written/byte", used.side.disk_written_bytes as f64 / puts.bytes as f64)
        .with("read/byte", used.side.disk_read_bytes as f64 / puts.bytes as f64)
        .with("RSS MiB", used.side.resident_bytes as f64 / f64::from(1 << 20))
        .with("drain s", seconds(times.acknowledged, times.ended))
        .with("messages", messages)
        .with("repeated", repeated as f64))
}
