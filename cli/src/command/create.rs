//! `hqueue create`

use clap::Args;
use hqueue::QueueSpec;

use super::key_value;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::say;

/// Make a queue.
#[derive(Args, Debug)]
pub(crate) struct Create {
    queue: String,
    /// 1 to 32767.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=i64::from(i16::MAX)))]
    partitions: i32,
    /// How long a message is kept, in whole seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..))]
    ttl: i64,
    /// A setting of the original HQueue, or one that begins with hbase. It is kept and shown by describe.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    connection: Connection,
}

impl Create {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut spec = QueueSpec { name: self.queue, partitions: self.partitions, ttl_seconds: self.ttl, ..QueueSpec::default() };
        for (key, value) in self.settings {
            if spec.configuration.contains_key(&key) {
                return Err(Failure::Usage(format!("--set {key} is given twice")));
            }
            spec.configuration.insert(key, value);
        }
        let notices = self.connection.open().await?.admin().create_queue(&spec).await?;
        notices.iter().for_each(|notice| say(format_args!("note: {notice}")));
        Ok(())
    }
}
