//! Redis Streams.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisError, Value};
use tokio::task::JoinSet;

use super::{Adapter, Hearing, Site};
use crate::driver::{Flights, Intake, Link, Load, Place};
use crate::failure::{Failure, Outcome};
use crate::messages::{BareValues, Stamp};
use crate::setting::Durability;
use crate::sides::{Plan, Process, Running};

#[derive(Debug)]
pub(super) struct Redis;

const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes and messages of one read.
const READ_BYTES: usize = 1 << 20;
const MAX_READ: usize = 1000;
/// Pipelines that a client may have queued.
const QUEUED: usize = 1 << 16;

fn failed(doing: &'static str) -> impl Fn(RedisError) -> Failure {
    move |error| Failure::Side(format!("Redis, {doing}: {error}"))
}

/// The key of a partition's stream.
fn key(queue: u16, partition: u16) -> String {
    format!("bench{queue}-{partition}")
}

fn group(number: usize) -> String {
    format!("receiver{number}")
}

async fn connection(address: SocketAddr) -> Outcome<MultiplexedConnection> {
    let client = Client::open(format!("redis://{address}/")).map_err(failed("connecting"))?;
    // Reads wait for messages as long as it takes; and commands that wait for room might overtake each other.
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(QUEUED);
    client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed("connecting"))
}

async fn first_connection(address: SocketAddr) -> Outcome<MultiplexedConnection> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ready = async {
            let mut connection = connection(address).await?;
            // It may be loading what it has stored.
            redis::cmd("PING").exec_async(&mut connection).await.map_err(failed("waiting for it"))?;
            Ok(connection)
        };
        match ready.await {
            Ok(connection) => return Ok(connection),
            Err(failure) if Instant::now() > deadline => return Err(failure),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

impl Adapter for Redis {
    fn spawn(&self, at: &Site) -> Outcome<Vec<Process>> {
        let fsync = match at.durability {
            Durability::Sync => "always",
            Durability::Async => "everysec",
        };
        let mut command = Command::new(at.installed.join("debian/usr/bin/redis-server"));
        command.env("LD_LIBRARY_PATH", at.installed.join("debian/usr/lib/x86_64-linux-gnu"));
        command.current_dir(&at.data).args(["--bind", "127.0.0.1", "--port"]).arg(at.address.port().to_string());
        command.arg("--dir").arg(&at.data).args(["--appendonly", "yes", "--appendfsync", fsync]);
        command.args(["--save", "", "--auto-aof-rewrite-percentage", "0"]);
        Ok(vec![Process::start_command(command, at.output("redis"))?])
    }

    fn set_up<'a>(&'a self, at: &'a Site, plan: &'a Plan) -> BoxFuture<'a, Outcome<()>> {
        Box::pin(async move {
            let mut connection = first_connection(at.address).await?;
            for (queue, partition) in plan.load.places() {
                for number in 0..plan.subscribers {
                    let mut create = redis::cmd("XGROUP");
                    create.arg("CREATE").arg(key(queue, partition)).arg(group(number)).arg("0").arg("MKSTREAM");
                    match create.exec_async(&mut connection).await {
                        Err(error) if error.code() != Some("BUSYGROUP") => return Err(failed("making a group")(error)),
                        _ => {}
                    }
                }
            }
            Ok(())
        })
    }

    fn connect<'a>(&'a self, address: SocketAddr, load: &'a Load) -> BoxFuture<'a, Outcome<Box<dyn Link>>> {
        Box::pin(async move {
            let connection = connection(address).await?;
            let link: Box<dyn Link> =
                Box::new(RedisLink { connection, values: BareValues::new(load.shape), flights: Flights::default() });
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
        let fsync = match durability {
            Durability::Sync => {
                knob("appendfsync", "always", "the documented way to have each turn of its loop synced before its answers")
            }
            Durability::Async => knob("appendfsync", "everysec", "default"),
        };
        vec![
            fsync,
            knob("save", "none", "the append-only file is enough, snapshots would only cost"),
            knob("auto-aof-rewrite-percentage", "0", "no rewrite of the whole file beside a measurement; in its favour"),
            knob("XADD", "pipelined, a pipeline a put", "documented"),
            knob(
                "XREADGROUP",
                "COUNT up to 1,000 or 1 MiB, BLOCK 0, a connection a partition",
                "a blocking read holds its connection",
            ),
            knob("XACK", "one for all that a read gave", "takes many ids"),
        ]
    }
}

#[derive(Debug)]
struct RedisLink {
    connection: MultiplexedConnection,
    values: BareValues,
    flights: Flights,
}

impl Link for RedisLink {
    fn send(&mut self, place: Place, first: Stamp) -> BoxFuture<'_, Outcome<()>> {
        Box::pin(async move {
            let key = key(place.queue, place.partition);
            let mut puts = Pipeline::new();
            for value in self.values.stamped(first) {
                puts.cmd("XADD").arg(&key).arg("*").arg("v").arg(value).ignore();
            }
            let mut connection = self.connection.clone();
            let put = async move { puts.exec_async(&mut connection).await.map_err(failed("a put")) };
            self.flights.launch(Box::pin(put)).await;
            Ok(())
        })
    }

    fn answered(&mut self) -> BoxFuture<'_, Outcome<usize>> {
        Box::pin(self.flights.landed())
    }
}

struct Reader {
    connection: MultiplexedConnection,
    key: String,
    group: String,
    count: usize,
}

impl Reader {
    async fn take_all(self, intake: &Intake) -> Outcome<()> {
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(&self.group).arg("consumer").arg("COUNT").arg(self.count);
        read.arg("BLOCK").arg(0).arg("STREAMS").arg(&self.key).arg(">");
        let mut came = Came::default();
        loop {
            // What was read is acknowledged while the next read is under way already, on the same connection.
            let (mut to_read, mut to_acknowledge) = (self.connection.clone(), self.connection.clone());
            let acknowledged = async {
                if !came.ids.is_empty() {
                    let mut acknowledge = redis::cmd("XACK");
                    acknowledge.arg(&self.key).arg(&self.group).arg(&came.ids);
                    acknowledge.exec_async(&mut to_acknowledge).await.map_err(failed("acknowledging"))?;
                    intake.acknowledged(came.new);
                }
                Ok::<_, Failure>(())
            };
            let next = async { read.query_async::<Value>(&mut to_read).await.map_err(failed("reading")) };
            let ((), answer) = tokio::try_join!(acknowledged, next)?;
            let arrival = intake.now_ns();
            intake.welcome().await;
            came = Came::read(answer, intake, arrival)?;
        }
    }
}

/// What one read has brought.
#[derive(Default)]
struct Came {
    ids: Vec<Vec<u8>>,
    new: u64,
}

impl Came {
    /// `[[key, [[id, [field, value]], ...]]]`
    fn read(answer: Value, intake: &Intake, arrival: u64) -> Outcome<Self> {
        let bad = || Failure::Side("Redis, reading: an answer of another form".to_owned());
        let [stream] = items(answer).and_then(|streams| streams.try_into().ok()).ok_or_else(bad)?;
        let [_, entries]: [Value; 2] = items(stream).and_then(|parts| parts.try_into().ok()).ok_or_else(bad)?;
        let mut came = Self::default();
        let mut values = Vec::new();
        for entry in items(entries).ok_or_else(bad)? {
            let [id, fields]: [Value; 2] = items(entry).and_then(|parts| parts.try_into().ok()).ok_or_else(bad)?;
            let [_, value]: [Value; 2] = items(fields).and_then(|parts| parts.try_into().ok()).ok_or_else(bad)?;
            let (Value::BulkString(id), Value::BulkString(value)) = (id, value) else { return Err(bad()) };
            came.ids.push(id);
            values.push(value);
        }
        came.new = intake.take(values.iter().map(Vec::as_slice), arrival);
        Ok(came)
    }
}

fn items(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// Subscribes to everything, as the subscriber with this number.
async fn consume(address: SocketAddr, plan: &Plan, number: usize, intake: &Arc<Intake>) -> Outcome<Hearing> {
    let count = (READ_BYTES / plan.load.shape.value_bytes.max(1)).clamp(1, MAX_READ);
    let mut tasks = JoinSet::new();
    for (queue, partition) in plan.load.places() {
        // A read that waits holds its connection.
        let connection = connection(address).await?;
        let reader = Reader { connection, key: key(queue, partition), group: group(number), count };
        let intake = Arc::clone(intake);
        tasks.spawn(async move {
            if let Err(failure) = reader.take_all(&intake).await {
                intake.fault(failure.to_string());
            }
        });
    }
    Ok(Box::new(tasks) as Hearing)
}
