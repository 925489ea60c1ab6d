//! The options of a subscription, as flags of the commands that set them.

use std::collections::BTreeMap;

use clap::Args;
use clap::builder::PossibleValuesParser;
use hqueue_broker::{OptionError, SubscriptionOptions};

/// They go to the broker by their names.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// The wait before a failed call is repeated; it doubles with each failure [default: 1s]
    #[arg(long, value_name = "D", value_parser = option("retry-min"))]
    retry_min: Option<String>,
    /// The longest wait between repetitions [default: 60s]
    #[arg(long, value_name = "D", value_parser = option("retry-max"))]
    retry_max: Option<String>,
    /// How long a call may take [default: 30s]
    #[arg(long, value_name = "D", value_parser = option("call-timeout"))]
    call_timeout: Option<String>,
    /// How the endpoint's messages are told apart [default: auto]
    #[arg(long, value_name = "T", value_parser = PossibleValuesParser::new(["auto", "buffered", "framed"]))]
    transport: Option<String>,
    /// How the endpoint's values are encoded [default: auto]
    #[arg(long, value_name = "P", value_parser = PossibleValuesParser::new(["auto", "binary", "compact"]))]
    protocol: Option<String>,
    /// Most messages in a call [default: 1000]
    #[arg(long, value_name = "N", value_parser = option("batch-messages"))]
    batch_messages: Option<String>,
    /// Most bytes in a call, unless a single message is larger [default: 1048576]
    #[arg(long, value_name = "N", value_parser = option("batch-bytes"))]
    batch_bytes: Option<String>,
    /// How often a batch is tried before the message that it fails by is looked for [default: 16]
    #[arg(long, value_name = "N", value_parser = option("max-attempts"))]
    max_attempts: Option<String>,
    /// What becomes of a message that cannot be consumed [default: dead-letter]
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["dead-letter", "block"]))]
    on_poison: Option<String>,
    /// After so many dead letters without a success between them nothing more is dead-lettered [default: 10]
    #[arg(long, value_name = "N", value_parser = option("max-dead-in-a-row"))]
    max_dead_in_a_row: Option<String>,
    /// Most messages in flight, over all endpoints; 0: two batches for each connection [default: 0]
    #[arg(long, value_name = "N", value_parser = option("window-messages"))]
    window_messages: Option<String>,
    /// Most bytes in flight, over all endpoints [default: 33554432]
    #[arg(long, value_name = "N", value_parser = option("window-bytes"))]
    window_bytes: Option<String>,
    /// Most messages a second; 0: as many as it takes [default: 0]
    #[arg(long, value_name = "N", value_parser = option("rate-messages"))]
    rate_messages: Option<String>,
    /// Most bytes a second; 0: as many as it takes [default: 0]
    #[arg(long, value_name = "N", value_parser = option("rate-bytes"))]
    rate_bytes: Option<String>,
    /// Whether messages of a partition are consumed in order [default: partition]
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["partition", "none"]))]
    ordering: Option<String>,
    /// Without order: calls of one partition in flight [default: 4]
    #[arg(long, value_name = "N", value_parser = option("calls"))]
    calls: Option<String>,
    /// Without order: most messages between the checkpoint and the furthest that was sent [default: 2000]
    #[arg(long, value_name = "N", value_parser = option("max-span"))]
    max_span: Option<String>,
}

impl Options {
    /// Those that were given, by name.
    pub(super) fn given(self) -> BTreeMap<String, String> {
        let all = [
            ("retry-min", self.retry_min),
            ("retry-max", self.retry_max),
            ("call-timeout", self.call_timeout),
            ("transport", self.transport),
            ("protocol", self.protocol),
            ("batch-messages", self.batch_messages),
            ("batch-bytes", self.batch_bytes),
            ("max-attempts", self.max_attempts),
            ("on-poison", self.on_poison),
            ("max-dead-in-a-row", self.max_dead_in_a_row),
            ("window-messages", self.window_messages),
            ("window-bytes", self.window_bytes),
            ("rate-messages", self.rate_messages),
            ("rate-bytes", self.rate_bytes),
            ("ordering", self.ordering),
            ("calls", self.calls),
            ("max-span", self.max_span),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// The same limits as the broker's, which looks again: it may be of another version.
fn option(name: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync {
    move |text| match SubscriptionOptions::default().set(name, text) {
        Ok(()) => Ok(text.to_owned()),
        Err(OptionError::BadValue { wanted, .. }) => Err(format!("it is {wanted}")),
        Err(error) => Err(error.to_string()),
    }
}
