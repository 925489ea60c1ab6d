//! Producers: each on a connection of its own, with a number of puts in flight.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::clock::Clock;
use super::dialect::Dialect;
use super::frames::Frames;
use super::latency::Latencies;
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::{PutShape, PutTemplate, Stamp};
use crate::sides::queue_name;

/// A put that is not answered for so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

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
}

/// When a producer stops.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    Time(Instant),
    /// So many puts of each producer.
    Puts(u64),
}

/// What was put.
#[derive(Clone, Debug, Default)]
pub struct Puts {
    pub messages: u64,
    /// Of values.
    pub bytes: u64,
    /// From the put's first byte to its answer, in nanoseconds.
    pub latencies: Latencies,
}

/// All the producers of a run. Numbers go on from one phase to the next.
#[derive(Debug)]
pub struct Producers(Vec<Producer>);

impl Producers {
    pub async fn connect(to: SocketAddr, dialect: &Arc<dyn Dialect>, load: &Load, clock: Clock) -> Outcome<Self> {
        let mut producers = Vec::new();
        for number in 0..load.producers {
            producers.push(Producer::connect(to, Arc::clone(dialect), load, number, clock).await?);
        }
        Ok(Self(producers))
    }

    /// Lets all of them put, and waits for the last answer.
    pub async fn run(&mut self, until: Until) -> Outcome<Puts> {
        let mut running = JoinSet::new();
        for mut producer in self.0.drain(..) {
            running.spawn(async move {
                let puts = producer.run(until).await;
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

#[derive(Debug)]
struct Producer {
    number: u32,
    writer: OwnedWriteHalf,
    frames: Frames<OwnedReadHalf>,
    dialect: Arc<dyn Dialect>,
    /// One a queue.
    templates: Vec<PutTemplate>,
    shape: PutShape,
    /// By partition, through all queues: the number of the next message. Neighbours are of different queues.
    next: Vec<u64>,
    /// The partition of the next put, in `next`.
    turn: usize,
    window: usize,
    clock: Clock,
}

impl Producer {
    async fn connect(to: SocketAddr, dialect: Arc<dyn Dialect>, load: &Load, number: u32, clock: Clock) -> Outcome<Self> {
        let socket = TcpStream::connect(to).await.doing(|| format!("connecting to {to}"))?;
        socket.set_nodelay(true).doing(|| "setting up a connection".to_owned())?;
        let (reader, writer) = socket.into_split();
        let partitions = usize::from(load.all_partitions());
        Ok(Self {
            number,
            writer,
            frames: Frames::new(reader),
            templates: (0..load.queues).map(|queue| dialect.put(&queue_name(queue), load.shape)).collect(),
            shape: load.shape,
            dialect,
            next: vec![0; partitions],
            turn: number as usize % partitions,
            window: load.in_flight,
            clock,
        })
    }

    async fn run(&mut self, until: Until) -> Outcome<Puts> {
        let mut sent_at = VecDeque::with_capacity(self.window);
        let mut puts = Puts::default();
        let mut sent = 0;
        loop {
            let goes_on = |sent| match until {
                Until::Time(end) => Instant::now() < end,
                Until::Puts(count) => sent < count,
            };
            while sent_at.len() < self.window && goes_on(sent) {
                sent_at.push_back(self.send().await?);
                sent += 1;
            }
            if sent_at.is_empty() {
                break;
            }
            loop {
                let answered = timeout(PATIENCE, self.frames.next()).await;
                let answered = answered.map_err(|_| Failure::Side(format!("a put has no answer for {PATIENCE:?}")))?;
                if !answered.doing(|| "reading the answer to a put".to_owned())? {
                    return Err(Failure::Side("the connection was closed in the middle of a put".to_owned()));
                }
                self.dialect.check_answer(self.frames.body())?;
                let Some(began) = sent_at.pop_front() else {
                    return Err(Failure::Side("an answer without a put".to_owned()));
                };
                puts.latencies.note(self.clock.now_ns().saturating_sub(began));
                if !self.frames.has_next() {
                    break;
                }
            }
        }
        let PutShape { messages, value_bytes } = self.shape;
        puts.messages = sent * messages as u64;
        puts.bytes = puts.messages * value_bytes as u64;
        Ok(puts)
    }

    /// Sends the next put; returns when it began.
    async fn send(&mut self) -> Outcome<u64> {
        let turn = self.turn;
        self.turn = (turn + 1) % self.next.len().max(1);
        let sent_ns = self.clock.now_ns();
        let (queue, partition) = (turn % self.templates.len().max(1), turn / self.templates.len().max(1));
        if let (Some(next), Some(template)) = (self.next.get_mut(turn), self.templates.get_mut(queue)) {
            let small = |n| u16::try_from(n).unwrap_or(u16::MAX);
            let first = Stamp { producer: self.number, partition: small(turn), number: *next, sent_ns };
            *next += self.shape.messages as u64;
            self.writer.write_all(template.stamped(small(partition), first)).await.doing(|| "sending a put".to_owned())?;
        }
        Ok(sent_ns)
    }
}
