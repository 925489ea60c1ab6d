//! RabbitMQ's quorum queues.

use std::fmt;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, try_join_all};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ExchangeKind};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Adapter, Hearing, Site};
use crate::driver::{Flights, Intake, Link, Load, Place};
use crate::failure::{Failure, Outcome};
use crate::messages::{BareValues, Stamp};
use crate::setting::Durability;
use crate::sides::{Plan, Process, Running};

#[derive(Debug)]
pub(super) struct RabbitMq;

const PATIENCE: Duration = Duration::from_secs(90);
const HANDSHAKE: Duration = Duration::from_secs(10);
const PENDING_BYTES: usize = 32 << 20;
const MAX_PENDING: usize = 2000;
/// Messages that are acknowledged together, if they are here already.
const TOGETHER: usize = 512;
const SCRIPTS: &str = "debian/usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8/sbin";

fn failed(doing: &'static str) -> impl Fn(lapin::Error) -> Failure {
    move |error| Failure::Side(format!("RabbitMQ, {doing}: {error}"))
}

/// The exchange of a partition.
fn exchange(queue: u16, partition: u16) -> String {
    format!("bench{queue}-{partition}")
}

/// The queue of one subscriber of a partition.
fn queue(queue: u16, partition: u16, number: usize) -> String {
    format!("bench{queue}-{partition}-{number}")
}

async fn connection(address: SocketAddr) -> Outcome<Connection> {
    let uri = format!("amqp://guest:guest@{address}/%2f");
    // It may never answer to who comes while it starts.
    match timeout(HANDSHAKE, Connection::connect(&uri, ConnectionProperties::default())).await {
        Ok(connected) => connected.map_err(failed("connecting")),
        Err(_) => Err(Failure::Side(format!("RabbitMQ did not answer within {HANDSHAKE:?}"))),
    }
}

async fn first_connection(address: SocketAddr) -> Outcome<Connection> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match connection(address).await {
            Ok(connection) => return Ok(connection),
            Err(failure) if Instant::now() > deadline => return Err(failure),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Everything by which its scripts find a place, so that nothing of the system's is touched.
fn command(at: &Site, program: &str) -> Command {
    let [ports, distribution, _] = at.more_ports;
    let debian = at.installed.join("debian");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(at.installed.join(program));
    command
        .env("PATH", format!("{}:{path}", debian.join("usr/lib/erlang/bin").display()))
        .env("LD_LIBRARY_PATH", format!("{0}/usr/lib/x86_64-linux-gnu:{0}/lib/x86_64-linux-gnu", debian.display()))
        .env("HOME", &at.data)
        .env("ERL_EPMD_PORT", ports.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODENAME", "bench@localhost")
        .env("RABBITMQ_DIST_PORT", distribution.to_string())
        .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
        .env("RABBITMQ_CONF_ENV_FILE", at.data.join("none"))
        .env("RABBITMQ_CONFIG_FILE", at.data.join("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", at.data.join("plugins"))
        .env("RABBITMQ_MNESIA_BASE", at.data.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", at.data.join("log"))
        .env("RABBITMQ_PID_FILE", at.data.join("pid"))
        // The virtual machine takes the place of the script, so that it can be ended by its id.
        .env("RUNNING_UNDER_SYSTEMD", "true")
        .current_dir(&at.data);
    command
}

impl Adapter for RabbitMq {
    fn spawn(&self, at: &Site) -> Outcome<Vec<Process>> {
        at.write("rabbitmq.conf", &format!("listeners.tcp.1 = {}\nlog.file.level = warning\n", at.address))?;
        at.write("plugins", "[].\n")?;
        // Else it would start one for everybody on the machine.
        let mut names = command(at, "debian/usr/lib/erlang/bin/epmd");
        names.args(["-port", &at.more_ports.first().map(u16::to_string).unwrap_or_default()]);
        let names = Process::start_command(names, at.output("epmd"))?;
        let server = command(at, &format!("{SCRIPTS}/rabbitmq-server"));
        Ok(vec![names, Process::start_command(server, at.output("rabbitmq"))?])
    }

    fn set_up<'a>(&'a self, at: &'a Site, plan: &'a Plan) -> BoxFuture<'a, Outcome<()>> {
        Box::pin(async move {
            let connection = first_connection(at.address).await?;
            let channel = connection.create_channel().await.map_err(failed("opening a channel"))?;
            for (number, partition) in plan.load.places() {
                let exchange = exchange(number, partition);
                let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
                let made =
                    channel.exchange_declare(exchange.as_str().into(), ExchangeKind::Fanout, options, FieldTable::default());
                made.await.map_err(failed("making an exchange"))?;
                for subscriber in 0..plan.subscribers {
                    let queue = queue(number, partition, subscriber);
                    let mut arguments = FieldTable::default();
                    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
                    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
                    channel.queue_declare(queue.as_str().into(), options, arguments).await.map_err(failed("making a queue"))?;
                    let options = QueueBindOptions::default();
                    let bound =
                        channel.queue_bind(queue.into(), exchange.as_str().into(), "".into(), options, FieldTable::default());
                    bound.await.map_err(failed("binding a queue"))?;
                }
            }
            Ok(())
        })
    }

    fn connect<'a>(&'a self, address: SocketAddr, load: &'a Load) -> BoxFuture<'a, Outcome<Box<dyn Link>>> {
        Box::pin(async move {
            let connection = connection(address).await?;
            let channel = connection.create_channel().await.map_err(failed("opening a channel"))?;
            channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(failed("asking for confirms"))?;
            let link =
                RabbitLink { _connection: connection, channel, values: BareValues::new(load.shape), flights: Flights::default() };
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

    fn knobs(&self, _durability: Durability) -> Vec<[String; 3]> {
        let knob = |name: &str, value: &str, why: &str| [name.to_owned(), value.to_owned(), why.to_owned()];
        vec![
            knob(
                "queue",
                "quorum, one member; one a partition and subscriber, behind a fanout exchange",
                "the documented kind for data that must last; it syncs its log before it confirms",
            ),
            knob("publish", "persistent, confirms, many unconfirmed", "documented"),
            knob("prefetch", "up to 2,000 messages or 32 MiB", "the documentation advises bounded and not small"),
            knob("acknowledgement", "multiple: up to 512 messages that came together", "documented"),
            knob("page-cache class", "none", "persistent messages are confirmed once they are synced"),
        ]
    }
}

struct RabbitLink {
    /// The channel belongs to it.
    _connection: Connection,
    channel: Channel,
    values: BareValues,
    flights: Flights,
}

impl fmt::Debug for RabbitLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RabbitLink({:?})", self.flights)
    }
}

impl Link for RabbitLink {
    fn send(&mut self, place: Place, first: Stamp) -> BoxFuture<'_, Outcome<()>> {
        Box::pin(async move {
            let exchange = exchange(place.queue, place.partition);
            let persistent = BasicProperties::default().with_delivery_mode(2);
            let mut confirms = Vec::new();
            for value in self.values.stamped(first) {
                let options = BasicPublishOptions::default();
                let sent = self.channel.basic_publish(exchange.as_str().into(), "".into(), options, value, persistent.clone());
                let confirm = sent.await.map_err(failed("publishing"))?;
                confirms.push(async move {
                    match confirm.await.map_err(failed("a confirm"))? {
                        Confirmation::Ack(None) => Ok(()),
                        other => Err(Failure::Side(format!("RabbitMQ, a put: {other:?}"))),
                    }
                });
            }
            self.flights.launch(Box::pin(async move { try_join_all(confirms).await.map(drop) })).await;
            Ok(())
        })
    }

    fn answered(&mut self) -> BoxFuture<'_, Outcome<usize>> {
        Box::pin(self.flights.landed())
    }
}

async fn take_all(consumer: Consumer, intake: &Intake) -> Outcome<()> {
    let mut together = consumer.ready_chunks(TOGETHER);
    while let Some(messages) = together.next().await {
        let arrival = intake.now_ns();
        let messages = messages.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed("receiving"))?;
        intake.welcome().await;
        let new = intake.take(messages.iter().map(|message| &*message.data), arrival);
        if let Some(last) = messages.last() {
            last.acker.ack(BasicAckOptions { multiple: true }).await.map_err(failed("acknowledging"))?;
        }
        intake.acknowledged(new);
    }
    Err(Failure::Side("RabbitMQ has ended a consumer".to_owned()))
}

/// Subscribes to everything, as the subscriber with this number.
async fn consume(address: SocketAddr, plan: &Plan, number: usize, intake: &Arc<Intake>) -> Outcome<Hearing> {
    let connection = Arc::new(connection(address).await?);
    let prefetch = (PENDING_BYTES / plan.load.shape.value_bytes.max(1)).clamp(16, MAX_PENDING);
    let mut tasks = JoinSet::new();
    for (own, partition) in plan.load.places() {
        let channel = connection.create_channel().await.map_err(failed("opening a channel"))?;
        let prefetch = u16::try_from(prefetch).unwrap_or(u16::MAX);
        channel.basic_qos(prefetch, BasicQosOptions::default()).await.map_err(failed("setting the prefetch"))?;
        let queue = queue(own, partition, number);
        let options = BasicConsumeOptions::default();
        let consumer = channel.basic_consume(queue.into(), "consumer".into(), options, FieldTable::default());
        let consumer = consumer.await.map_err(failed("subscribing"))?;
        let (intake, connection) = (Arc::clone(intake), Arc::clone(&connection));
        tasks.spawn(async move {
            // The channel belongs to it.
            let _held = connection;
            if let Err(failure) = take_all(consumer, &intake).await {
                intake.fault(failure.to_string());
            }
        });
    }
    Ok(Box::new(tasks) as Hearing)
}
