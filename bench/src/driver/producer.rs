//! Producers: each on a connection of its own, in a closed loop with a number of puts in flight, or in an open one by a schedule.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::clock::Clock;
use super::dialect::Dialect;
use super::latency::Latencies;
use super::link::{FrameLink, Link, Place};
use super::ticker::Ticker;
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::{PutShape, Stamp};

/// A put that is not answered for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much is put at once, and where.
#[derive(Clone, Debug)]
pub struct Load {
    /// Puts go round all queues, and round all partitions of each.
    pub queues: u16,
    /// Of each queue.
    pub partitions: u16,
    pub producers: u32,
    /// Puts of one producer that are not answered yet.
    pub in_flight: usize,
    pub shape: PutShape,
}

impl Load {
    /// Of all queues together.
    #[must_use]
    pub fn all_partitions(&self) -> u16 {
        self.queues.saturating_mul(self.partitions)
    }

    /// Every partition of every queue.
    pub fn places(&self) -> impl Iterator<Item = (u16, u16)> + use<> {
        let partitions = self.partitions;
        (0..self.queues).flat_map(move |queue| (0..partitions).map(move |partition| (queue, partition)))
    }
}

/// When a producer stops.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    Time(Instant),
    /// So many puts of each producer.
    Puts(u64),
}

/// When a producer puts.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Whenever less is in flight than may be.
    Closed,
    /// By a schedule of so many puts a second, all producers together, however many are in flight. Times count from the schedule.
    Open(u32),
}

/// What was put.
#[derive(Clone, Debug, Default)]
pub struct Puts {
    pub messages: u64,
    /// Of values.
    pub bytes: u64,
    /// From the put's first byte, or from when it was due, to its answer, in nanoseconds.
    pub latencies: Latencies,
}

/// All the producers of a run. Numbers go on from one phase to the next.
#[derive(Debug)]
pub struct Producers(Vec<Producer>);

impl Producers {
    pub async fn connect(to: SocketAddr, dialect: &Arc<dyn Dialect>, load: &Load, clock: Clock) -> Outcome<Self> {
        let mut links: Vec<Box<dyn Link>> = Vec::new();
        for _ in 0..load.producers {
            links.push(Box::new(FrameLink::connect(to, Arc::clone(dialect), load).await?));
        }
        Ok(Self::over(links, 0, load, clock))
    }

    /// A producer on each connection, numbered from `first`.
    #[must_use]
    pub fn over(links: Vec<Box<dyn Link>>, first: u32, load: &Load, clock: Clock) -> Self {
        Self((first..).zip(links).map(|(number, link)| Producer::new(link, load, number, clock)).collect())
    }

    /// Lets all of them put as fast as answers come, and waits for the last answer.
    pub async fn run(&mut self, until: Until) -> Outcome<Puts> {
        self.run_at(Pace::Closed, until).await
    }

    /// Lets all of them put, and waits for the last answer.
    pub async fn run_at(&mut self, pace: Pace, until: Until) -> Outcome<Puts> {
        let mut running = JoinSet::new();
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        for mut producer in self.0.drain(..) {
            running.spawn(async move {
                let puts = match pace {
                    Pace::Closed => producer.run_closed(until).await,
                    Pace::Open(per_second) => {
                        producer.run_open(Schedule::of(per_second, producer.number % count.max(1), count), until).await
                    }
                };
                (producer, puts)
            });
        }
        let mut all = Puts::default();
        while let Some(ended) = running.join_next().await {
            let (producer, puts) = ended.map_err(|error| Failure::Side(format!("a producer ended badly: {error}")))?;
            let puts = puts?;
            all.messages += puts.messages;
            all.bytes += puts.bytes;
            all.latencies.extend(puts.latencies);
            self.0.push(producer);
        }
        Ok(all)
    }
}

/// When the puts of one producer are due, in nanoseconds since the beginning.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    first: u64,
    period: u64,
}

impl Schedule {
    /// Producers take turns.
    fn of(per_second: u32, producer: u32, producers: u32) -> Self {
        let between = 1_000_000_000 / u64::from(per_second.max(1));
        Self { first: between * u64::from(producer), period: between * u64::from(producers.max(1)) }
    }

    const fn due(self, number: u64) -> u64 {
        self.first + self.period * number
    }
}

#[derive(Debug)]
struct Producer {
    number: u32,
    link: Box<dyn Link>,
    queues: usize,
    shape: PutShape,
    /// By partition, through all queues: the number of the next message. Neighbours are of different queues.
    next: Vec<u64>,
    /// The partition of the next put, in `next`.
    turn: usize,
    window: usize,
    clock: Clock,
    /// When the puts in flight began, or were due.
    began_at: VecDeque<u64>,
    latencies: Latencies,
}

impl Producer {
    fn new(link: Box<dyn Link>, load: &Load, number: u32, clock: Clock) -> Self {
        let partitions = usize::from(load.all_partitions()).max(1);
        Self {
            number,
            link,
            queues: usize::from(load.queues).max(1),
            shape: load.shape,
            next: vec![0; partitions],
            turn: number as usize % partitions,
            window: load.in_flight,
            clock,
            began_at: VecDeque::with_capacity(load.in_flight),
            latencies: Latencies::default(),
        }
    }

    async fn run_closed(&mut self, until: Until) -> Outcome<Puts> {
        let mut sent = 0;
        loop {
            while self.began_at.len() < self.window && goes_on(until, sent) {
                self.send(self.clock.now_ns()).await?;
                sent += 1;
            }
            if self.began_at.is_empty() {
                return Ok(self.puts(sent));
            }
            self.wait_answered().await?;
        }
    }

    async fn run_open(&mut self, schedule: Schedule, until: Until) -> Outcome<Puts> {
        let [first, period] = [schedule.first, schedule.period].map(Duration::from_nanos);
        // The clock is read before the timer begins: a tick that came before its put is due would send it a whole period late.
        let (began, mut sent) = (self.clock.now_ns(), 0);
        let ticker = Ticker::every(first, period).doing(|| "making a timer".to_owned())?;
        while goes_on(until, sent) {
            tokio::select! {
                answers = self.link.answered(), if !self.began_at.is_empty() => self.note_answers(answers?)?,
                tick = ticker.tick() => {
                    tick.doing(|| "waiting for a timer".to_owned())?;
                    while began + schedule.due(sent) <= self.clock.now_ns() && goes_on(until, sent) {
                        self.send(began + schedule.due(sent)).await?;
                        sent += 1;
                    }
                }
            }
        }
        while !self.began_at.is_empty() {
            self.wait_answered().await?;
        }
        Ok(self.puts(sent))
    }

    fn puts(&mut self, sent: u64) -> Puts {
        let PutShape { messages, value_bytes } = self.shape;
        let messages = sent * messages as u64;
        Puts { messages, bytes: messages * value_bytes as u64, latencies: std::mem::take(&mut self.latencies) }
    }

    async fn wait_answered(&mut self) -> Outcome<()> {
        let answers = timeout(PATIENCE, self.link.answered()).await;
        let answers = answers.map_err(|_| Failure::Side(format!("a put has no answer for {PATIENCE:?}")))??;
        self.note_answers(answers)
    }

    fn note_answers(&mut self, answers: usize) -> Outcome<()> {
        let now = self.clock.now_ns();
        for _ in 0..answers {
            let Some(began) = self.began_at.pop_front() else {
                return Err(Failure::Side("an answer without a put".to_owned()));
            };
            self.latencies.note(now.saturating_sub(began));
        }
        Ok(())
    }

    /// Sends the next put, stamped with the time from which it counts.
    async fn send(&mut self, began: u64) -> Outcome<()> {
        let turn = self.turn;
        self.turn = (turn + 1) % self.next.len().max(1);
        let small = |n| u16::try_from(n).unwrap_or(u16::MAX);
        let place = Place { queue: small(turn % self.queues), partition: small(turn / self.queues) };
        if let Some(next) = self.next.get_mut(turn) {
            let first = Stamp { producer: self.number, partition: small(turn), number: *next, sent_ns: began };
            *next += self.shape.messages as u64;
            self.link.send(place, first).await?;
            self.began_at.push_back(began);
        }
        Ok(())
    }
}

fn goes_on(until: Until, sent: u64) -> bool {
    match until {
        Until::Time(end) => Instant::now() < end,
        Until::Puts(count) => sent < count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn producers_take_turns() {
        let due: Vec<_> = (0..2).map(|producer| Schedule::of(1000, producer, 2)).collect();
        let mut all: Vec<_> = due.iter().flat_map(|schedule| (0..3).map(|number| schedule.due(number))).collect();
        all.sort_unstable();
        assert_eq!(all, (0..6).map(|number| number * 1_000_000).collect::<Vec<_>>());
    }
}
