//! NATS JetStream.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::{self, Context, stream};
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, try_join_all};
use tokio::task::JoinSet;

use super::{Adapter, Hearing, Site};
use crate::driver::{Flights, Intake, Link, Load, Place};
use crate::failure::{Failure, Outcome};
use crate::messages::{BareValues, Stamp};
use crate::setting::Durability;
use crate::sides::{Plan, Process, Running};

#[derive(Debug)]
pub(super) struct Nats;

const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that a consumer may have unacknowledged, and messages.
const PENDING_BYTES: usize = 32 << 20;
const MAX_PENDING: usize = 8192;
/// Messages that are acknowledged together, if they are here already.
const TOGETHER: usize = 512;

fn failed<E: std::fmt::Display>(doing: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::Side(format!("NATS, {doing}: {error}"))
}

/// The subject and the stream of a partition.
fn name(queue: u16, partition: u16) -> String {
    format!("bench{queue}-{partition}")
}

async fn client(address: SocketAddr) -> Outcome<Client> {
    let options = ConnectOptions::new().skip_subject_validation(true);
    options.connect(format!("nats://{address}")).await.map_err(failed("connecting"))
}

async fn first_client(address: SocketAddr) -> Outcome<Client> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match client(address).await {
            Ok(client) => return Ok(client),
            Err(failure) if Instant::now() > deadline => return Err(failure),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

impl Adapter for Nats {
    fn spawn(&self, at: &Site) -> Outcome<Vec<Process>> {
        let sync = match at.durability {
            Durability::Sync => "sync_interval: always",
            Durability::Async => "",
        };
        let store = at.data.join("store");
        let text = format!(
            "listen: \"{}\"\nmax_pending: 1GB\njetstream {{\n  store_dir: {:?}\n  max_file_store: 100GB\n  {sync}\n}}\n",
            at.address,
            store.display().to_string()
        );
        let config = at.write("nats.conf", &text)?;
        let mut command = Command::new(at.installed.join("nats/bin/nats-server"));
        command.arg("-c").arg(config);
        Ok(vec![Process::start_command(command, at.output("nats"))?])
    }

    fn set_up<'a>(&'a self, at: &'a Site, plan: &'a Plan) -> BoxFuture<'a, Outcome<()>> {
        Box::pin(async move {
            let context = jetstream::new(first_client(at.address).await?);
            for (queue, partition) in plan.load.places() {
                let name = name(queue, partition);
                let config = stream::Config { subjects: vec![name.clone()], name, ..stream::Config::default() };
                // It may say that it is not ready yet for a moment.
                let deadline = Instant::now() + PATIENCE;
                while let Err(error) = context.get_or_create_stream(config.clone()).await {
                    if Instant::now() > deadline {
                        return Err(failed("making a stream")(error));
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            Ok(())
        })
    }

    fn connect<'a>(&'a self, address: SocketAddr, load: &'a Load) -> BoxFuture<'a, Outcome<Box<dyn Link>>> {
        Box::pin(async move {
            let client = client(address).await?;
            let context =
                jetstream::context::ContextBuilder::new().ack_timeout(PATIENCE).backpressure_on_inflight(false).build(client);
            let link: Box<dyn Link> =
                Box::new(NatsLink { context, values: BareValues::new(load.shape), flights: Flights::default() });
            Ok(link)
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
        let sync = match durability {
            Durability::Sync => {
                knob("sync_interval", "always", "the documented way to have each message synced before its acknowledgement")
            }
            Durability::Async => knob("sync_interval", "2m (default)", "as it comes"),
        };
        vec![
            sync,
            knob(
                "streams",
                "one a partition, file storage, one replica",
                "each has a file and a lock of its own, so partitions do not wait for each other",
            ),
            knob("publish", "asynchronous, one acknowledgement a message", "the documented way to publish much"),
            knob(
                "consumer",
                "push, acknowledgement of all up to a message",
                "documented for batches: an acknowledgement for up to 512 messages that came together",
            ),
            knob(
                "max_pending",
                "1 GB",
                "by default it cuts off a consumer that has 64 MB on their way, and delivers what is lost with that minutes later",
            ),
            knob("max_ack_pending", "up to 8,192 messages or 32 MiB", "default 1,000 holds up a fast consumer"),
        ]
    }
}

#[derive(Debug)]
struct NatsLink {
    context: Context,
    values: BareValues,
    flights: Flights,
}

impl Link for NatsLink {
    fn send(&mut self, place: Place, first: Stamp) -> BoxFuture<'_, Outcome<()>> {
        Box::pin(async move {
            let subject = async_nats::Subject::from(name(place.queue, place.partition));
            let mut answers = Vec::new();
            for value in self.values.stamped(first) {
                let sent = self.context.publish(subject.clone(), Bytes::copy_from_slice(value)).await;
                answers.push(sent.map_err(failed("publishing"))?.into_future());
            }
            let put = async move { try_join_all(answers).await.map(drop).map_err(failed("an acknowledgement of a put")) };
            self.flights.launch(Box::pin(put)).await;
            Ok(())
        })
    }

    fn answered(&mut self) -> BoxFuture<'_, Outcome<usize>> {
        Box::pin(self.flights.landed())
    }
}

async fn take_all(messages: push::Messages, intake: &Intake) -> Outcome<()> {
    let mut together = messages.ready_chunks(TOGETHER);
    while let Some(messages) = together.next().await {
        let arrival = intake.now_ns();
        let messages = messages.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed("receiving"))?;
        intake.welcome().await;
        let new = intake.take(messages.iter().map(|message| &*message.payload), arrival);
        if let Some(last) = messages.last() {
            last.ack().await.map_err(|error| Failure::Side(format!("NATS, acknowledging: {error}")))?;
        }
        intake.acknowledged(new);
    }
    Ok(())
}

/// Subscribes to everything, as the subscriber with this number.
async fn consume(address: SocketAddr, plan: &Plan, number: usize, intake: &Arc<Intake>) -> Outcome<Hearing> {
    let client = client(address).await?;
    let pending = (PENDING_BYTES / plan.load.shape.value_bytes.max(1)).clamp(16, MAX_PENDING);
    let mut tasks = JoinSet::new();
    for (queue, partition) in plan.load.places() {
        let (name, inbox) = (name(queue, partition), client.new_inbox());
        let config = push::Config {
            // Another one after a restart, as the old one waits for what it has delivered.
            durable_name: Some(format!("receiver{number}-{}", inbox.replace('.', "-"))),
            deliver_subject: inbox,
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::All,
            ack_wait: Duration::from_secs(600),
            max_ack_pending: i64::try_from(pending).unwrap_or(i64::MAX),
            ..push::Config::default()
        };
        let context = jetstream::new(client.clone());
        let stream = context.get_stream(&name).await.map_err(failed("looking for a stream"))?;
        let consumer = stream.create_consumer(config).await.map_err(failed("making a consumer"))?;
        let messages = consumer.messages().await.map_err(failed("subscribing"))?;
        let intake = Arc::clone(intake);
        tasks.spawn(async move {
            if let Err(failure) = take_all(messages, &intake).await {
                intake.fault(failure.to_string());
            }
        });
    }
    Ok(Box::new(tasks) as Hearing)
}
