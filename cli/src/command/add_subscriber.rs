//! `hqueue add_subscriber`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use hqueue::{Position, SubscriberSpec};
use hqueue_broker::SubscriptionOptions;

use super::subscription_options::Options;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Add a subscriber to a queue.
///
/// With --address the broker calls these endpoints until the subscriber is deleted. Without, it keeps a place for the subscriber and
/// waits for an endpoint to register.
#[derive(Args, Debug)]
pub(crate) struct AddSubscriber {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::subscriber)]
    subscriber: String,
    /// Where HQueueSubscriberService is served; each partition is sent to one of several.
    #[arg(long = "address", value_name = "HOST:PORT[,HOST:PORT]", value_delimiter = ',', value_parser = values::address)]
    addresses: Vec<String>,
    /// Only messages of this topic; may be given several times.
    #[arg(long = "topic", value_name = "T", value_parser = values::topic())]
    topics: Vec<OsString>,
    /// Only this partition; may be given several times.
    #[arg(long = "partition", value_name = "N", value_parser = values::partition)]
    partitions: Vec<i16>,
    /// Where to begin.
    #[arg(long, value_name = "POSITION", default_value = "latest", allow_hyphen_values = true)]
    from: Position,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    connection: Connection,
}

/// Whether those that were given go together.
fn check(given: &BTreeMap<String, String>) -> Result<(), Failure> {
    let mut all = SubscriptionOptions::default();
    given.iter().try_for_each(|(name, value)| all.set(name, value)).and_then(|()| all.check()).map_err(Failure::usage)
}

impl AddSubscriber {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let options = self.options.given();
        check(&options)?;
        let spec = SubscriberSpec {
            name: self.subscriber,
            addresses: self.addresses,
            topics: self.topics.into_iter().map(|topic| topic.into_vec().into()).collect(),
            partitions: self.partitions,
            start: Some(self.from),
            options,
        };
        Ok(self.connection.open().await?.admin().add_subscriber(&self.queue, &spec).await?)
    }
}
