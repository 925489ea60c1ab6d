//! The peers: how each is started, set up and spoken to, with its own client library.
//!
//! Every peer is a feature of this crate, since their clients are many crates: a build has those that it was asked for. All run alone on
//! this machine, listen on free ports of the loopback and keep their data where HQueue keeps its own. A partition is what orders messages:
//! a stream (NATS, Redis), a partition of a topic (Kafka), a queue (RabbitMQ, RocketMQ).

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "rocketmq")]
mod rocketmq;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::driver::{Intake, Link, Load};
use crate::failure::{Doing, Failure, Outcome};
use crate::report::PeerReport;
use crate::setting::Durability;
use crate::sides::{Places, Plan, Process, Running, free_port};

/// A peer's name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    Kafka,
    Nats,
    #[value(name = "rabbitmq")]
    RabbitMq,
    Redis,
    #[value(name = "rocketmq")]
    RocketMq,
}

/// How a peer is run and used.
trait Adapter: Debug + Send + Sync {
    /// Starts its processes on a data folder, new or used, and returns at once. The last one serves clients.
    fn spawn(&self, at: &Site) -> Outcome<Vec<Process>>;

    /// Waits until it serves, and makes what the plan needs, unless it is there.
    fn set_up<'a>(&'a self, at: &'a Site, plan: &'a Plan) -> BoxFuture<'a, Outcome<()>>;

    /// Connects a producer.
    fn connect<'a>(&'a self, address: SocketAddr, load: &'a Load) -> BoxFuture<'a, Outcome<Box<dyn Link>>>;

    /// Lets every subscriber listen to everything.
    fn listen<'a>(
        &'a self,
        at: &'a Site,
        running: &'a mut Running,
        plan: &'a Plan,
        intakes: &'a [Arc<Intake>],
    ) -> BoxFuture<'a, Outcome<Vec<Hearing>>>;

    /// What was set, and why: name, value, reason.
    fn knobs(&self, durability: Durability) -> Vec<[String; 3]>;
}

/// What listens to a peer, until it is dropped.
pub(crate) type Hearing = Box<dyn Debug + Send + Sync>;

/// Where a peer runs.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "every peer needs some of it, and a build has some of them")]
pub(crate) struct Site {
    /// What `bench/peers/install` has installed.
    installed: PathBuf,
    data: PathBuf,
    /// What it prints goes here.
    output: PathBuf,
    address: SocketAddr,
    /// Ports that it needs beside the one for clients.
    more_ports: [u16; 3],
    durability: Durability,
}

#[allow(dead_code, reason = "every peer needs some of it, and a build has some of them")]
impl Site {
    fn output(&self, name: &str) -> PathBuf {
        self.output.join(format!("{name}.out"))
    }

    /// Writes a configuration file into the data folder.
    fn write(&self, name: &str, text: &str) -> Outcome<PathBuf> {
        let path = self.data.join(name);
        std::fs::write(&path, text).doing(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

impl Peer {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Nats => "nats",
            Self::RabbitMq => "rabbitmq",
            Self::Redis => "redis",
            Self::RocketMq => "rocketmq",
        }
    }

    fn adapter(self) -> Outcome<Box<dyn Adapter>> {
        match self {
            #[cfg(feature = "kafka")]
            Self::Kafka => Ok(Box::new(kafka::Kafka)),
            #[cfg(feature = "nats")]
            Self::Nats => Ok(Box::new(nats::Nats)),
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq => Ok(Box::new(rabbitmq::RabbitMq)),
            #[cfg(feature = "redis")]
            Self::Redis => Ok(Box::new(redis::Redis)),
            #[cfg(feature = "rocketmq")]
            Self::RocketMq => Ok(Box::new(rocketmq::RocketMq)),
            #[allow(unreachable_patterns, reason = "of the peers that are built in")]
            other => Err(Failure::Usage(format!(
                "this build cannot speak to {0}: build hqueue-bench with --features {0} (bench/run does)",
                other.name()
            ))),
        }
    }

    /// What it is, and what is set for it in both classes.
    pub fn report(self, places: &Places) -> Outcome<PeerReport> {
        let adapter = self.adapter()?;
        let mut knobs = adapter.knobs(Durability::Sync);
        for knob in adapter.knobs(Durability::Async) {
            if !knobs.contains(&knob) {
                let [name, value, why] = knob;
                knobs.insert(1, [format!("{name}, page-cache class"), value, why]);
            }
        }
        let client = match self {
            Self::Kafka => "rdkafka 0.39 with librdkafka 2.12.1",
            Self::Nats => "async-nats 0.51",
            Self::RabbitMq => "lapin 4.12",
            Self::Redis => "redis 1.8",
            Self::RocketMq => "rocketmq-client 5.3.3, Java, in a process of its own",
        };
        Ok(PeerReport { name: self.name().to_owned(), version: self.version(places), client: client.to_owned(), knobs })
    }

    /// As its installed files tell.
    fn version(self, places: &Places) -> String {
        let (folder, prefix, suffix) = match self {
            Self::Kafka => ("kafka", "kafka_2.13-", ".jar"),
            Self::Nats => {
                let version = std::fs::read_to_string(places.installed.join("nats.done")).unwrap_or_default();
                return version.trim().trim_start_matches('v').to_owned();
            }
            Self::RabbitMq => ("debian/usr/lib/rabbitmq/lib", "rabbitmq_server-", ""),
            Self::Redis => ("versions", "redis-server-", ""),
            Self::RocketMq => ("rocketmq", "rocketmq-broker-", ".jar"),
        };
        let names = std::fs::read_dir(places.installed.join(folder)).into_iter().flatten();
        let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let version = names.find_map(|name| Some(name.strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned()));
        version.unwrap_or_else(|| "of unknown version".to_owned())
    }
}

/// Starts a peer on a new data folder and makes what the plan needs.
pub(crate) async fn start(peer: Peer, places: &Places, plan: &Plan, intakes: &[Arc<Intake>]) -> Outcome<(Running, Vec<Hearing>)> {
    let adapter = peer.adapter()?;
    let data = places.data.join(peer.name());
    std::fs::create_dir_all(&data).doing(|| format!("making {}", data.display()))?;
    let address = free_port()?;
    let site = site(places, &data, address, plan.durability)?;
    let mut running = run(&*adapter, &site)?;
    match listen(&*adapter, &site, &mut running, plan, intakes).await {
        Ok(hearing) => Ok((running, hearing)),
        Err(failure) => {
            // Its last words say more than a connection that was refused.
            running.check()?;
            Err(failure)
        }
    }
}

async fn listen(
    adapter: &dyn Adapter,
    site: &Site,
    running: &mut Running,
    plan: &Plan,
    intakes: &[Arc<Intake>],
) -> Outcome<Vec<Hearing>> {
    adapter.set_up(site, plan).await?;
    adapter.listen(site, running, plan, intakes).await
}

fn site(places: &Places, data: &Path, address: SocketAddr, durability: Durability) -> Outcome<Site> {
    let mut more_ports = [0; 3];
    for port in &mut more_ports {
        *port = free_port()?.port();
    }
    let output = places.data.clone();
    Ok(Site { installed: places.installed.clone(), data: data.to_owned(), output, address, more_ports, durability })
}

fn run(adapter: &dyn Adapter, site: &Site) -> Outcome<Running> {
    let mut processes = adapter.spawn(site)?;
    let process = processes.pop().ok_or_else(|| Failure::Side(format!("{adapter:?} started nothing")))?;
    Ok(Running {
        process,
        others: processes,
        clients: Vec::new(),
        beside: Vec::new(),
        address: site.address,
        data: site.data.clone(),
        site: None,
    })
}

pub(crate) async fn connect(peer: Peer, running: &Running, load: &Load) -> Outcome<Box<dyn Link>> {
    peer.adapter()?.connect(running.address, load).await
}

/// Ends all processes of a peer as a crash would, or in order, calls `between`, starts them again on the same data and returns at once.
pub(crate) async fn restart(
    peer: Peer,
    places: &Places,
    running: &mut Running,
    plan: &Plan,
    in_order: bool,
    between: impl FnOnce() -> Outcome<()> + Send,
) -> Outcome<()> {
    let adapter = peer.adapter()?;
    running.stop_all(in_order).await?;
    between()?;
    let site = site(places, &running.data, running.address, plan.durability)?;
    let mut processes = adapter.spawn(&site)?;
    running.process = processes.pop().ok_or_else(|| Failure::Side(format!("{adapter:?} started nothing")))?;
    running.others = processes;
    running.site = Some(site);
    Ok(())
}

/// Waits until a peer that was started again serves, and lets subscribers listen to it.
pub(crate) async fn listen_again(
    peer: Peer,
    running: &mut Running,
    plan: &Plan,
    intakes: &[Arc<Intake>],
) -> Outcome<Vec<Hearing>> {
    let site = running.site.clone().ok_or_else(|| Failure::Side("it was not started again".to_owned()))?;
    listen(&*peer.adapter()?, &site, running, plan, intakes).await
}
