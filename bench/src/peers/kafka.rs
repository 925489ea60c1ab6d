//! Kafka, one node that is broker and controller.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::{Adapter, Hearing, Site};
use crate::driver::{Flights, Intake, Link, Load, Place};
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::{BareValues, Stamp};
use crate::setting::Durability;
use crate::sides::{Plan, Process, Running, queue_name};

#[derive(Debug)]
pub(super) struct Kafka;

const PATIENCE: Duration = Duration::from_secs(180);
/// What the server's start script sets for the virtual machine.
const JAVA: [&str; 8] = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
];
/// Messages whose position is stored together.
const TOGETHER: usize = 1000;

fn failed<E: fmt::Display>(doing: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::Side(format!("Kafka, {doing}: {error}"))
}

fn client(address: SocketAddr) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", address.to_string()).set("broker.address.family", "v4");
    config
}

fn java(at: &Site, main: &str) -> Command {
    let mut command = Command::new("java");
    command.args(JAVA).arg("-cp").arg(at.installed.join("kafka").join("*")).arg(main).current_dir(&at.data);
    command
}

impl Adapter for Kafka {
    fn spawn(&self, at: &Site) -> Outcome<Vec<Process>> {
        let [controller, ..] = at.more_ports;
        let logs = at.data.join("logs");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://{0},CONTROLLER://127.0.0.1:{controller}\nadvertised.listeners=PLAINTEXT://{0}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={1}\noffsets.topic.replication.factor=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\nauto.create.topics.enable=false\n",
            at.address,
            logs.display()
        );
        let config = at.write("server.properties", &text)?;
        if !logs.exists() {
            let mut format = java(at, "kafka.tools.StorageTool");
            format.args(["format", "-t", "aHF1ZXVlLWJlbmNoLTAwMQ", "-c"]).arg(&config);
            let output = format.output().doing(|| "formatting Kafka's folder".to_owned())?;
            if !output.status.success() {
                return Err(failed("formatting")(String::from_utf8_lossy(&output.stderr)));
            }
        }
        let mut server = java(at, "kafka.Kafka");
        server.arg(config);
        Ok(vec![Process::start_command(server, at.output("kafka"))?])
    }

    fn set_up<'a>(&'a self, at: &'a Site, plan: &'a Plan) -> BoxFuture<'a, Outcome<()>> {
        Box::pin(async move {
            let admin: AdminClient<DefaultClientContext> = client(at.address).create().map_err(failed("connecting"))?;
            let names: Vec<_> = (0..plan.load.queues).map(queue_name).collect();
            let topic = |name| {
                let topic = NewTopic::new(name, i32::from(plan.load.partitions), TopicReplication::Fixed(1));
                match at.durability {
                    Durability::Sync => topic.set("flush.messages", "1"),
                    Durability::Async => topic,
                }
            };
            let topics: Vec<_> = names.iter().map(|name| topic(name)).collect();
            let options = AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE));
            let made = admin.create_topics(&topics, &options).await.map_err(failed("making topics"))?;
            for (topic, error) in made.into_iter().filter_map(Result::err) {
                if error != RDKafkaErrorCode::TopicAlreadyExists {
                    return Err(failed("making a topic")(format!("{topic}: {error}")));
                }
            }
            Ok(())
        })
    }

    fn connect<'a>(&'a self, address: SocketAddr, load: &'a Load) -> BoxFuture<'a, Outcome<Box<dyn Link>>> {
        Box::pin(async move {
            let mut config = client(address);
            config.set("acks", "all").set("enable.idempotence", "true").set("linger.ms", linger(load));
            let producer = config.create_with_context(Reports).map_err(failed("connecting"))?;
            let link = KafkaLink { producer, values: BareValues::new(load.shape), flights: Flights::default() };
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }

    fn listen<'a>(
        &'a self,
        at: &'a Site,
        _running: &'a mut Running,
        plan: &'a Plan,
        intakes: &'a [Arc<Intake>],
    ) -> BoxFuture<'a, Outcome<Vec<Hearing>>> {
        Box::pin(async move {
            let mut hearing = Vec::new();
            for (number, intake) in intakes.iter().enumerate() {
                hearing.push(consume(at.address, plan, number, intake).await?);
            }
            Ok(hearing)
        })
    }

    fn knobs(&self, durability: Durability) -> Vec<[String; 3]> {
        let knob = |name: &str, value: &str, why: &str| [name.to_owned(), value.to_owned(), why.to_owned()];
        let flush = match durability {
            Durability::Sync => knob(
                "flush.messages",
                "1, of the topics",
                "one sync an appended batch; Kafka's own documentation advises replication instead",
            ),
            Durability::Async => knob("flush.messages", "default (never)", "as it comes"),
        };
        vec![
            flush,
            knob("acks, enable.idempotence", "all, true", "defaults of its own Java client; keeps the order"),
            knob("linger.ms", "0 where a put has one message, else 5", "0 for latency, 5 is the default for throughput"),
            knob("consumer", "one client for all partitions", "a fetch brings many partitions"),
            knob(
                "enable.auto.offset.store",
                "false: stored once a message was handled, committed every 100 ms",
                "librdkafka's documented way to deliver at least once; a request a batch would cost more",
            ),
            knob("fetch.queue.backoff.ms", "5", "default 1,000 makes a full client queue wait for a second"),
            knob("heap, collector", "-Xms1G -Xmx1G, G1 with 20 ms", "its start script's"),
        ]
    }
}

fn linger(load: &Load) -> &'static str {
    if load.shape.messages == 1 { "0" } else { "5" }
}

/// Hears what became of each message.
struct Reports;

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = Arc<Put>;

    fn delivery(&self, result: &DeliveryResult<'_>, put: Arc<Put>) {
        put.delivered(result.as_ref().map(drop).map_err(|(error, _)| error.clone()));
    }
}

/// A put of which not all messages are delivered yet.
struct Put {
    left: AtomicUsize,
    done: Mutex<Option<oneshot::Sender<Result<(), KafkaError>>>>,
}

impl Put {
    fn delivered(&self, result: Result<(), KafkaError>) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 || result.is_err() {
            let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Nobody hears it when the producer has given up.
            let _ = done.map(|done| done.send(result));
        }
    }
}

struct KafkaLink {
    producer: ThreadedProducer<Reports>,
    values: BareValues,
    flights: Flights,
}

impl fmt::Debug for KafkaLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaLink({:?}, {} queued)", self.flights, self.producer.in_flight_count())
    }
}

impl Link for KafkaLink {
    fn send(&mut self, place: Place, first: Stamp) -> BoxFuture<'_, Outcome<()>> {
        Box::pin(async move {
            let topic = queue_name(place.queue);
            let values = self.values.stamped(first);
            let (sender, done) = oneshot::channel();
            let put = Arc::new(Put { left: AtomicUsize::new(values.len()), done: Mutex::new(Some(sender)) });
            for value in values {
                let record: BaseRecord<'_, (), [u8], _> = BaseRecord::with_opaque_to(&topic, Arc::clone(&put));
                let mut record = record.partition(i32::from(place.partition)).payload(value);
                while let Err((error, back)) = self.producer.send(record) {
                    if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                        return Err(failed("a put")(error));
                    }
                    record = back;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            self.flights
                .launch(Box::pin(async move {
                    let result = done.await.map_err(failed("a put"))?;
                    result.map_err(failed("a put"))
                }))
                .await;
            Ok(())
        })
    }

    fn answered(&mut self) -> BoxFuture<'_, Outcome<usize>> {
        Box::pin(self.flights.landed())
    }
}

/// A thread that polls, as the client wants it.
struct Polling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Polling")
    }
}

impl Polling {
    fn start(consumer: BaseConsumer, all: TopicPartitionList, intake: Arc<Intake>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, runtime) = (Arc::clone(&stop), Handle::current());
        let thread = std::thread::spawn(move || {
            let assigned = assign(&consumer, &all, &theirs);
            if let Err(failure) = assigned.and_then(|()| poll_all(&consumer, &intake, &runtime, &theirs)) {
                intake.fault(failure.to_string());
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Polling {
    /// Waits, so that it has gone before its broker has.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            eprintln!("Kafka's consumer ended badly");
        }
    }
}

/// Takes all partitions from where their positions are. The client would not come back to it if the broker that keeps the positions did
/// not know yet that it does, so that is waited for.
fn assign(consumer: &BaseConsumer, all: &TopicPartitionList, stop: &AtomicBool) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = consumer.committed_offsets(all.clone(), Duration::from_secs(5)) {
        if Instant::now() > deadline || stop.load(Ordering::Acquire) {
            return Err(failed("asking for positions")(error));
        }
        // The step of a question with a deadline: the client tells nobody when the broker is ready.
        std::thread::sleep(Duration::from_millis(10));
    }
    consumer.assign(all).map_err(failed("assigning"))
}

fn poll_all(consumer: &BaseConsumer, intake: &Intake, runtime: &Handle, stop: &AtomicBool) -> Outcome<()> {
    let mut behind: HashMap<(String, i32), i64> = HashMap::new();
    while !stop.load(Ordering::Acquire) {
        let mut next = consumer.poll(Duration::from_millis(50));
        if next.is_none() {
            continue;
        }
        let arrival = intake.now_ns();
        let until = Instant::now() + PATIENCE;
        tokio_wait(runtime, intake, stop);
        let (mut new, mut count) = (0, 0);
        while let Some(message) = next {
            let message = match message {
                Ok(message) => message,
                // The client gets over all others by itself, as its documentation says; a message that is lost by that is missed.
                Err(error) if error.rdkafka_error_code() != Some(RDKafkaErrorCode::Fatal) => break,
                Err(error) => return Err(failed("receiving")(error)),
            };
            let at = if count == 0 { arrival } else { intake.now_ns() };
            new += intake.take(message.payload(), at);
            note(&mut behind, message.topic(), message.partition(), message.offset());
            count += 1;
            next = if count < TOGETHER && Instant::now() < until { consumer.poll(Duration::ZERO) } else { None };
        }
        for ((topic, partition), offset) in behind.drain() {
            consumer.store_offset(&topic, partition, offset).map_err(failed("storing a position"))?;
        }
        intake.acknowledged(new);
    }
    Ok(())
}

/// A subscriber that is slow, or does not answer at all before it is stopped.
fn tokio_wait(runtime: &Handle, intake: &Intake, stop: &AtomicBool) {
    runtime.block_on(async {
        let mut ready = std::pin::pin!(intake.welcome());
        while !stop.load(Ordering::Acquire) {
            if tokio::time::timeout(Duration::from_millis(50), &mut ready).await.is_ok() {
                return;
            }
        }
    });
}

fn note(behind: &mut HashMap<(String, i32), i64>, topic: &str, partition: i32, offset: i64) {
    match behind.iter_mut().find(|((own, number), _)| *number == partition && own == topic) {
        Some((_, last)) => *last = offset,
        None => drop(behind.insert((topic.to_owned(), partition), offset)),
    }
}

/// Subscribes to everything, as the subscriber with this number.
async fn consume(address: SocketAddr, plan: &Plan, number: usize, intake: &Arc<Intake>) -> Outcome<Hearing> {
    let mut config = client(address);
    config.set("group.id", format!("receiver{number}")).set("auto.offset.reset", "earliest");
    config.set("enable.auto.offset.store", "false").set("enable.auto.commit", "true");
    config.set("auto.commit.interval.ms", "100").set("fetch.queue.backoff.ms", "5");
    let consumer: BaseConsumer = config.create().map_err(failed("connecting"))?;
    let mut all = TopicPartitionList::new();
    for (queue, partition) in plan.load.places() {
        all.add_partition_offset(&queue_name(queue), i32::from(partition), Offset::Stored).map_err(failed("assigning"))?;
    }
    Ok(Box::new(Polling::start(consumer, all, Arc::clone(intake))) as Hearing)
}
