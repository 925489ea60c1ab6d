//! `hqueue create`

use clap::{Args, ValueEnum};
use hqueue::QueueSpec;

use super::key_value;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::say;
use crate::values::{self, UNLIMITED};

/// Make a queue.
#[derive(Args, Debug)]
pub(crate) struct Create {
    #[arg(value_parser = values::new_queue)]
    queue: String,
    /// 1 to 32767.
    #[arg(long, value_name = "N", value_parser = values::number::<i32>(1, i16::MAX.into(), ""))]
    partitions: i32,
    /// How long a message is kept, in whole seconds.
    #[arg(long, value_name = "SECONDS", value_parser = values::ttl)]
    ttl: i64,
    /// A setting of the original HQueue, or one that begins with hbase. It is kept and shown by describe.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    settings: Vec<(String, String)>,
    /// Bytes of messages that the queue may have over all partitions; in a cluster each broker takes its share. Without it: as many as
    /// fit on the disk.
    #[arg(long, value_name = "N", value_parser = values::number::<i64>(1, UNLIMITED, "of bytes"))]
    max_bytes: Option<i64>,
    /// What becomes of a put for which there is no room then.
    #[arg(long, value_name = "POLICY", requires = "max_bytes", default_value = "reject")]
    when_full: WhenFull,
    /// With drop_oldest: what a subscription has not consumed is not dropped before its time; puts are refused instead.
    #[arg(long, requires = "max_bytes")]
    keep_unread: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum WhenFull {
    /// It is refused until messages expire or are truncated.
    Reject,
    /// The oldest messages go.
    DropOldest,
}

impl From<WhenFull> for hqueue::WhenFull {
    fn from(policy: WhenFull) -> Self {
        match policy {
            WhenFull::Reject => Self::Reject,
            WhenFull::DropOldest => Self::DropOldest,
        }
    }
}

impl Create {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.keep_unread && matches!(self.when_full, WhenFull::Reject) {
            return Err(Failure::Usage("--keep-unread goes with --when-full drop_oldest".to_owned()));
        }
        let mut spec = QueueSpec {
            name: self.queue,
            partitions: self.partitions,
            ttl_seconds: self.ttl,
            max_bytes: self.max_bytes,
            when_full: self.when_full.into(),
            keep_unread: self.keep_unread,
            ..QueueSpec::default()
        };
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
