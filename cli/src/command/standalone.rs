//! `hqueue standalone`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hqueue_broker::{Durability, Options, Standalone as Broker};

use crate::failure::Failure;
use crate::output::say;
use crate::signals::Signals;

/// Run a broker that keeps everything in one folder and needs nobody else.
///
/// SIGTERM and SIGINT stop it in order; a second one ends it at once.
#[derive(Args, Debug)]
pub(crate) struct Standalone {
    /// The folder that holds everything. One broker at a time uses it.
    #[arg(long, value_name = "DIR", default_value = "./hqueue-data")]
    data: PathBuf,
    /// Where clients reach it. Port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9190")]
    listen: SocketAddr,
    /// Where /metrics and /healthz are served.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9191")]
    http: SocketAddr,
    /// When a put is acknowledged.
    #[arg(long, value_enum, default_value_t = Acknowledge::Sync)]
    durability: Acknowledge,
    /// The largest value of a message.
    #[arg(long, value_name = "N", default_value_t = Options::default().max_message_bytes)]
    max_message_bytes: usize,
    /// Recent messages that are kept in memory for all subscribers.
    #[arg(long, value_name = "N", default_value_t = Options::default().tail_cache_bytes)]
    tail_cache_bytes: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Acknowledge {
    /// When it is synced to the disk: survives a power cut.
    Sync,
    /// When it is written; synced every 100 ms: survives a crash of the broker.
    Async,
}

impl Standalone {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let options = Options {
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
