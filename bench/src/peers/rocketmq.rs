//! RocketMQ. The Rust client falls short, so its Java client runs in a process of its own (`bench/peers/rocketmq/src/Bridge.java`), to
//! which the driver speaks in frames.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;

use super::{Adapter, Hearing, Site};
use crate::driver::{BridgeDialect, FloorDialect, FrameLink, Intake, Link, Load, Receiver};
use crate::failure::{Failure, Outcome};
use crate::setting::Durability;
use crate::sides::{Plan, Process, Running, wait_for_port};

#[derive(Debug)]
pub(super) struct RocketMq;

const PATIENCE: Duration = Duration::from_secs(180);
/// What its start scripts set, with less memory.
const JAVA: [&str; 10] = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:G1HeapRegionSize=16m",
    "-XX:G1ReservePercent=25",
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:-UseBiasedLocking",
    "-Djava.net.preferIPv4Stack=true",
    // On a busy machine a late heartbeat would cost all that is under way.
    "-Dcom.rocketmq.remoting.client.closeSocketIfTimeout=false",
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
];

fn java(at: &Site, memory: &str, main: &str) -> Command {
    let mut command = Command::new("java");
    command.args([format!("-Xms{memory}"), format!("-Xmx{memory}")]).args(JAVA);
    command.arg(format!("-Duser.home={}", at.data.display()));
    let jars = at.installed.join("rocketmq").join("*");
    command.arg("-cp").arg(format!("{}:{}", at.installed.join("rocketmq-bridge").display(), jars.display()));
    command.arg(main).env("ROCKETMQ_HOME", &at.data).current_dir(&at.data);
    command
}

/// The port of the broker; the one next to it is its second one.
fn broker_port(at: &Site) -> u16 {
    at.more_ports.get(1).copied().unwrap_or_default()
}

fn names_address(at: &Site) -> String {
    format!("127.0.0.1:{}", at.more_ports.first().copied().unwrap_or_default())
}

async fn wait_for(address: &str) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() > deadline {
            return Err(Failure::Side(format!("RocketMQ did not open {address} within {PATIENCE:?}")));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn broker_settings(at: &Site) -> String {
    let flush = match at.durability {
        Durability::Sync => "SYNC_FLUSH",
        Durability::Async => "ASYNC_FLUSH",
    };
    let store = at.data.join("store");
    let high_availability = at.more_ports.get(2).copied().unwrap_or_default();
    format!(
        "brokerClusterName=bench\nbrokerName=bench\nbrokerId=0\nbrokerIP1=127.0.0.1\nlistenPort={}\nnamesrvAddr={}\n\
         haListenPort={high_availability}\nstorePathRootDir={}\nstorePathCommitLog={}\nflushDiskType={flush}\n\
         autoCreateTopicEnable=false\nuseReentrantLockWhenPutMessage=true\nmaxTransferCountOnMessageInMemory=512\n\
         maxTransferBytesOnMessageInMemory=1048576\nmaxTransferCountOnMessageInDisk=512\nmaxTransferBytesOnMessageInDisk=1048576\n\
         waitTimeMillsInSendQueue=60000\nosPageCacheBusyTimeOutMills=60000\nsyncFlushTimeout=60000\ndiskMaxUsedSpaceRatio=98\n",
        broker_port(at),
        names_address(at),
        store.display(),
        store.join("commitlog").display(),
    )
}

impl Adapter for RocketMq {
    fn spawn(&self, at: &Site) -> Outcome<Vec<Process>> {
        let port = at.more_ports.first().copied().unwrap_or_default();
        let config = at.write("namesrv.properties", &format!("listenPort={port}\n"))?;
        let mut names = java(at, "256m", "org.apache.rocketmq.namesrv.NamesrvStartup");
        names.arg("-c").arg(config);
        let names = Process::start_command(names, at.output("rocketmq-namesrv"))?;
        let config = at.write("broker.properties", &broker_settings(at))?;
        let mut broker = java(at, "2g", "org.apache.rocketmq.broker.BrokerStartup");
        broker.arg("-c").arg(config);
        Ok(vec![names, Process::start_command(broker, at.output("rocketmq"))?])
    }

    fn set_up<'a>(&'a self, at: &'a Site, _plan: &'a Plan) -> BoxFuture<'a, Outcome<()>> {
        Box::pin(async move {
            wait_for(&names_address(at)).await?;
            wait_for(&format!("127.0.0.1:{}", broker_port(at))).await
        })
    }

    fn connect<'a>(&'a self, address: SocketAddr, load: &'a Load) -> BoxFuture<'a, Outcome<Box<dyn Link>>> {
        Box::pin(async move {
            let link = FrameLink::connect(address, Arc::new(BridgeDialect), load).await?;
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }

    /// Starts the bridge, which makes the topics and pushes to a port a subscriber.
    fn listen<'a>(
        &'a self,
        at: &'a Site,
        running: &'a mut Running,
        plan: &'a Plan,
        intakes: &'a [Arc<Intake>],
    ) -> BoxFuture<'a, Outcome<Vec<Hearing>>> {
        Box::pin(async move {
            let mut bridge = java(at, "512m", "Bridge");
            bridge.args([names_address(at), format!("127.0.0.1:{}", broker_port(at)), at.address.port().to_string()]);
            bridge.args([plan.load.queues, plan.load.partitions].map(|count| count.to_string()));
            let mut hearing: Vec<Hearing> = Vec::new();
            for intake in intakes {
                let receiver = Receiver::listen_for(Arc::clone(intake), 1, Arc::new(FloorDialect)).await?;
                bridge.args(receiver.addresses().iter().map(|address| address.port().to_string()));
                hearing.push(Box::new(receiver));
            }
            let mut bridge = Process::start_command(bridge, at.output("rocketmq-bridge"))?;
            let open = wait_for_port(&mut bridge, at.address).await;
            running.clients.push(bridge);
            open.map(|()| hearing)
        })
    }

    fn knobs(&self, durability: Durability) -> Vec<[String; 3]> {
        let knob = |name: &str, value: &str, why: &str| [name.to_owned(), value.to_owned(), why.to_owned()];
        let flush = match durability {
            Durability::Sync => knob(
                "flushDiskType",
                "SYNC_FLUSH",
                "the documented way to have a message synced before its acknowledgement; syncs are shared",
            ),
            Durability::Async => knob("flushDiskType", "ASYNC_FLUSH", "default"),
        };
        vec![
            flush,
            knob("useReentrantLockWhenPutMessage", "true", "advised with SYNC_FLUSH"),
            knob(
                "maxTransferCountOnMessageInMemory, ...InDisk",
                "512 messages, 1 MiB",
                "defaults of 32 and 8 hold up a consumer of batches",
            ),
            knob(
                "waitTimeMillsInSendQueue, osPageCacheBusyTimeOutMills",
                "60,000",
                "by default it refuses sends that wait for 200 ms",
            ),
            knob(
                "producer",
                "batches, one send at a time a partition and producer",
                "keeps the order; what waits meanwhile goes together, up to 1 MiB",
            ),
            knob(
                "consumer",
                "DefaultLitePullConsumer, assigned, 512 a fetch, position committed every 100 ms",
                "its push client polls as well, and takes seconds to its first message",
            ),
            knob("heap, collector", "broker 2 GiB, G1", "its start script asks for 8 GiB, which this machine cannot spare"),
        ]
    }
}
