//! `hqueue add_subscriber`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use clap::builder::PossibleValuesParser;
use hqueue::{Position, SubscriberSpec};
use hqueue_protocol::duration;

use crate::connection::Connection;
use crate::failure::Failure;

/// Add a subscriber to a queue.
///
/// With --address the broker calls these endpoints until the subscriber is deleted. Without, it keeps a place for the subscriber and
/// waits for an endpoint to register.
#[derive(Args, Debug)]
pub(crate) struct AddSubscriber {
    queue: String,
    subscriber: String,
    /// Where HQueueSubscriberService is served; each partition is sent to one of several.
    #[arg(long = "address", value_name = "HOST:PORT[,HOST:PORT]", value_delimiter = ',')]
    addresses: Vec<String>,
    /// Only messages of this topic; may be given several times.
    #[arg(long = "topic", value_name = "T")]
    topics: Vec<OsString>,
    /// Only this partition; may be given several times.
    #[arg(long = "partition", value_name = "N", value_parser = clap::value_parser!(i16).range(0..))]
    partitions: Vec<i16>,
    /// Where to begin.
    #[arg(long, value_name = "POSITION", default_value = "latest", allow_hyphen_values = true)]
    from: Position,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    connection: Connection,
}

/// They go to the broker by their names, which is also who knows their limits.
#[derive(Args, Debug)]
struct Options {
    /// The wait before a failed call is repeated; it doubles with each failure [default: 1s]
    #[arg(long, value_name = "D", value_parser = check_duration)]
    retry_min: Option<String>,
    /// The longest wait between repetitions [default: 60s]
    #[arg(long, value_name = "D", value_parser = check_duration)]
    retry_max: Option<String>,
    /// How long a call may take [default: 30s]
    #[arg(long, value_name = "D", value_parser = check_duration)]
    call_timeout: Option<String>,
    /// How the endpoint's messages are told apart [default: auto]
    #[arg(long, value_name = "T", value_parser = PossibleValuesParser::new(["auto", "buffered", "framed"]))]
    transport: Option<String>,
    /// How the endpoint's values are encoded [default: auto]
    #[arg(long, value_name = "P", value_parser = PossibleValuesParser::new(["auto", "binary", "compact"]))]
    protocol: Option<String>,
    /// Most messages in a call [default: 1000]
    #[arg(long, value_name = "N", value_parser = check_number)]
    batch_messages: Option<String>,
    /// Most bytes in a call, unless a single message is larger [default: 1048576]
    #[arg(long, value_name = "N", value_parser = check_number)]
    batch_bytes: Option<String>,
}

impl Options {
    /// Those that were given, by name.
    fn given(self) -> BTreeMap<String, String> {
        let all = [
            ("retry-min", self.retry_min),
            ("retry-max", self.retry_max),
            ("call-timeout", self.call_timeout),
            ("transport", self.transport),
            ("protocol", self.protocol),
            ("batch-messages", self.batch_messages),
            ("batch-bytes", self.batch_bytes),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

fn check_duration(text: &str) -> Result<String, duration::BadDuration> {
    duration::parse(text).map(|_| text.to_owned())
}

fn check_number(text: &str) -> Result<String, std::num::ParseIntError> {
    text.parse::<u32>().map(|number| number.to_string())
}

impl AddSubscriber {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let spec = SubscriberSpec {
            name: self.subscriber,
            addresses: self.addresses,
            topics: self.topics.into_iter().map(|topic| topic.into_vec().into()).collect(),
            partitions: self.partitions,
            start: Some(self.from),
            options: self.options.given(),
        };
        Ok(self.connection.open().await?.admin().add_subscriber(&self.queue, &spec).await?)
    }
}
