//! What the commands that run a broker have in common: flags, start, signals, stop.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hqueue_broker::{Broker, Coordination, Durability, HBaseOptions, MESSAGE_BYTES_LIMIT, Options, SMALLEST_TAIL_CACHE, Store};

use crate::failure::Failure;
use crate::output::say;
use crate::signals::Signals;
use crate::values::{self, UNLIMITED};

/// The flags of every broker.
#[derive(Args, Debug)]
pub(crate) struct Serving {
    /// The folder that holds everything it keeps. One broker at a time uses it.
    #[arg(long, value_name = "DIR", default_value = "./hqueue-data")]
    data: PathBuf,
    /// Where clients reach it. Port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9190", value_parser = values::listen)]
    listen: SocketAddr,
    /// Where /metrics and /healthz are served.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9191", value_parser = values::listen)]
    http: SocketAddr,
    /// Where messages are kept. All brokers that meet in one place keep them in the same store.
    #[arg(long, value_enum, default_value_t = Kept::Log, requires_if("hbase", "hbase"))]
    store: Kept,
    /// With --store hbase: Thrift2 gateways of HBase, HOST:PORT[,HOST:PORT]. Calls go to all of them in turn, past those that fail.
    #[arg(long, value_name = "GATEWAYS", value_parser = gateways)]
    hbase: Option<Gateways>,
    /// With --store hbase: the namespace of HBase in which queues are tables. It is made if it is not there.
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = namespace)]
    hbase_namespace: String,
    /// When a put is acknowledged, in the log. In HBase: when HBase has acknowledged it.
    #[arg(long, value_enum, default_value_t = Acknowledge::Sync)]
    durability: Acknowledge,
    /// The largest value of a message.
    #[arg(long, value_name = "N", default_value_t = Options::default().max_message_bytes,
          value_parser = values::number::<usize>(1, MESSAGE_BYTES_LIMIT as i128, "of bytes"))]
    max_message_bytes: usize,
    /// Recent messages that are kept in memory for all subscribers.
    #[arg(long, value_name = "N", default_value_t = Options::default().tail_cache_bytes,
          value_parser = values::number::<usize>(SMALLEST_TAIL_CACHE as i128, UNLIMITED, "of bytes"))]
    tail_cache_bytes: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Acknowledge {
    /// When it is synced to the disk: survives a power cut.
    Sync,
    /// When it is written; synced every 100 ms: survives a crash of the broker.
    Async,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kept {
    /// In the data folder of the broker that has the partition.
    Log,
    /// In HBase: any broker can have any partition.
    Hbase,
}

#[derive(Clone, Debug)]
struct Gateways(Vec<String>);

fn gateways(text: &str) -> Result<Gateways, String> {
    text.split(',').map(values::address).collect::<Result<_, _>>().map(Gateways)
}

fn namespace(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_name && text != "hbase" && text != "hqueue" {
        return Ok(text.to_owned());
    }
    Err("a namespace is 1 to 128 of A-Z, a-z, 0-9 and _, and neither hbase nor hqueue".to_owned())
}

impl Serving {
    fn kept(&self) -> Result<Store, Failure> {
        match (&self.store, &self.hbase) {
            (Kept::Log, None) => Ok(Store::Log),
            (Kept::Log, Some(_)) => Err(Failure::Usage("--hbase goes with --store hbase".to_owned())),
            (Kept::Hbase, gateways) => {
                let addresses = gateways.as_ref().map(|Gateways(addresses)| addresses.clone()).unwrap_or_default();
                let namespace = self.hbase_namespace.clone();
                Ok(Store::HBase(Box::new(HBaseOptions { namespace, ..HBaseOptions::new(addresses) })))
            }
        }
    }

    /// Runs a broker until a signal ends it.
    pub(crate) async fn run(self, coordination: Coordination, advertise: Option<String>) -> Result<(), Failure> {
        let store = self.kept()?;
        let mut signals = Signals::new()?;
        let options = Options {
            coordination,
            store,
            advertise,
            data: self.data.clone(),
            listen: self.listen,
            http: Some(self.http),
            durability: match self.durability {
                Acknowledge::Sync => Durability::Sync,
                Acknowledge::Async => Durability::Async,
            },
            max_message_bytes: self.max_message_bytes,
            tail_cache_bytes: self.tail_cache_bytes,
        };
        let start = Broker::start(options);
        let broker = tokio::select! {
            started = start => started.map_err(Failure::failed)?,
            // Nothing was promised to anybody yet: there is nothing to end in order.
            name = signals.next() => {
                eprintln!("hqueue: {name} before the broker was up, ending");
                return Ok(());
            }
        };
        say(format_args!("hqueue: serving on {}, data in {}; stop with ^C", broker.address(), self.data.display()));
        if let Some(http) = broker.http_address() {
            say(format_args!("hqueue: metrics on http://{http}/metrics"));
        }
        let name = signals.next().await;
        say(format_args!("hqueue: {name}, stopping"));
        signals.or_end(broker.stop()).await;
        Ok(())
    }
}
