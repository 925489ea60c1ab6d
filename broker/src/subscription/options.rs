//! What can be set for a subscription: every option with its effect, unit, default and limits.

use std::time::Duration;

use hqueue_protocol::wire::{Protocol, Transport};
use serde::{Deserialize, Serialize};

/// How a subscription is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct SubscriptionOptions {
    /// The wait before the first repetition of a failed call; it doubles with each failure. Default 1 s, 10 ms to `retry-max`.
    #[serde(with = "milliseconds")]
    pub retry_min: Duration,
    /// The longest wait between repetitions. Default 60 s, at most 1 h.
    #[serde(with = "milliseconds")]
    pub retry_max: Duration,
    /// How long a call may take, from its first byte to the last of its answer. Default 30 s, 100 ms to 1 h.
    #[serde(with = "milliseconds")]
    pub call_timeout: Duration,
    /// How the endpoint's messages are told apart: auto (found out), buffered or framed. Default auto.
    pub transport: TransportChoice,
    /// How the endpoint's values are encoded: auto (found out), binary or compact. Default auto.
    pub protocol: ProtocolChoice,
    /// Most messages in a call. Default 1,000, 1 to 100,000.
    pub batch_messages: u32,
    /// Most bytes in a call, unless a single message is larger. Default 1,048,576, 1,024 to 16,000,000.
    pub batch_bytes: u32,
    /// How often a batch is tried before the message that it fails by is looked for. Default 16, 1 to 1,000,000.
    pub max_attempts: u32,
    /// What becomes of a message that cannot be consumed. Default dead-letter.
    pub on_poison: OnPoison,
    /// After so many dead letters without a success between them nothing more is dead-lettered: the consumer fails at everything.
    /// Default 10, 1 to 1,000,000.
    pub max_dead_in_a_row: u32,
    /// Most messages in flight, over all endpoints of a broker; 0: two batches for each connection. Default 0, at most 10,000,000.
    pub window_messages: u32,
    /// Most bytes in flight, over all endpoints of a broker, unless a single message is larger. Default 33,554,432, 1,024 to 1,073,741,824.
    pub window_bytes: u32,
    /// Most messages a second, for each broker; 0: as many as it takes. Default 0.
    pub rate_messages: u32,
    /// Most bytes a second, for each broker; 0: as many as it takes. Default 0.
    pub rate_bytes: u32,
    /// Whether messages of a partition are consumed in order. Default partition.
    pub ordering: Ordering,
    /// Without order: calls of one partition in flight. Default 4, 1 to 16.
    pub calls: u32,
    /// Without order: most messages between the checkpoint and the furthest that was sent. Default 2,000, 1 to 1,000,000.
    pub max_span: u32,
}

/// Whether messages of a partition are consumed in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// One call in flight for a partition.
    #[default]
    Partition,
    /// Several: a batch that fails comes back while others go on.
    None,
}

/// What becomes of a message that its subscriber fails at again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnPoison {
    /// It goes to the dead-letter queue, and the next one is sent.
    #[default]
    DeadLetter,
    /// Its partition waits until the subscription is resumed.
    Block,
}

impl Default for SubscriptionOptions {
    fn default() -> Self {
        Self {
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
            call_timeout: Duration::from_secs(30),
            transport: TransportChoice::Auto,
            protocol: ProtocolChoice::Auto,
            batch_messages: 1000,
            batch_bytes: 1024 * 1024,
            max_attempts: 16,
            on_poison: OnPoison::DeadLetter,
            max_dead_in_a_row: 10,
            window_messages: 0,
            window_bytes: 32 * 1024 * 1024,
            rate_messages: 0,
            rate_bytes: 0,
            ordering: Ordering::Partition,
            calls: 4,
            max_span: 2000,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportChoice {
    #[default]
    Auto,
    Buffered,
    Framed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolChoice {
    #[default]
    Auto,
    Binary,
    Compact,
}

impl TransportChoice {
    fn from_name(name: &str) -> Option<Self> {
        [("auto", Self::Auto), ("buffered", Self::Buffered), ("framed", Self::Framed)]
            .into_iter()
            .find(|(n, _)| *n == name)
            .map(|(_, c)| c)
    }

    #[must_use]
    pub const fn known(self) -> Option<Transport> {
        match self {
            Self::Auto => None,
            Self::Buffered => Some(Transport::Buffered),
            Self::Framed => Some(Transport::Framed),
        }
    }
}

impl ProtocolChoice {
    fn from_name(name: &str) -> Option<Self> {
        [("auto", Self::Auto), ("binary", Self::Binary), ("compact", Self::Compact)]
            .into_iter()
            .find(|(n, _)| *n == name)
            .map(|(_, c)| c)
    }

    #[must_use]
    pub const fn known(self) -> Option<Protocol> {
        match self {
            Self::Auto => None,
            Self::Binary => Some(Protocol::Binary),
            Self::Compact => Some(Protocol::Compact),
        }
    }
}

/// The names of all options, as they stand on the command line.
pub const OPTION_NAMES: [&str; 17] = [
    "retry-min",
    "retry-max",
    "call-timeout",
    "transport",
    "protocol",
    "batch-messages",
    "batch-bytes",
    "max-attempts",
    "on-poison",
    "max-dead-in-a-row",
    "window-messages",
    "window-bytes",
    "rate-messages",
    "rate-bytes",
    "ordering",
    "calls",
    "max-span",
];

/// An option that cannot be set so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    #[error("there is no option {0:?}; the options are {names}", names = OPTION_NAMES.join(", "))]
    Unknown(String),
    #[error("{value:?} is no value for {name}: {wanted}")]
    BadValue { name: String, value: String, wanted: &'static str },
    #[error("retry-min ({min:?}) is longer than retry-max ({max:?})")]
    RetryOrder { min: Duration, max: Duration },
}

impl SubscriptionOptions {
    /// Sets one option from its text.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let bad = |wanted| OptionError::BadValue { name: name.to_owned(), value: value.to_owned(), wanted };
        match name {
            "retry-min" => {
                self.retry_min = duration(value, 10, 3_600_000)
                    .ok_or_else(|| bad("a length of time from 10ms to 1h: a whole number and ms, s, m, h or d"))?;
            }
            "retry-max" => {
                self.retry_max = duration(value, 10, 3_600_000)
                    .ok_or_else(|| bad("a length of time from 10ms to 1h: a whole number and ms, s, m, h or d"))?;
            }
            "call-timeout" => {
                self.call_timeout = duration(value, 100, 3_600_000)
                    .ok_or_else(|| bad("a length of time from 100ms to 1h: a whole number and ms, s, m, h or d"))?;
            }
            "transport" => {
                self.transport = TransportChoice::from_name(value).ok_or_else(|| bad("auto, buffered or framed"))?;
            }
            "protocol" => {
                self.protocol = ProtocolChoice::from_name(value).ok_or_else(|| bad("auto, binary or compact"))?;
            }
            "batch-messages" => {
                self.batch_messages = number(value, 1, 100_000).ok_or_else(|| bad("a number from 1 to 100000"))?;
            }
            "batch-bytes" => {
                self.batch_bytes =
                    number(value, 1024, 16_000_000).ok_or_else(|| bad("a number of bytes from 1024 to 16000000"))?;
            }
            "max-attempts" => {
                self.max_attempts = number(value, 1, 1_000_000).ok_or_else(|| bad("a number from 1 to 1000000"))?;
            }
            "on-poison" => {
                self.on_poison = match value {
                    "dead-letter" => OnPoison::DeadLetter,
                    "block" => OnPoison::Block,
                    _ => return Err(bad("dead-letter or block")),
                };
            }
            "max-dead-in-a-row" => {
                self.max_dead_in_a_row = number(value, 1, 1_000_000).ok_or_else(|| bad("a number from 1 to 1000000"))?;
            }
            "window-messages" => {
                self.window_messages = number(value, 0, 10_000_000).ok_or_else(|| bad("a number from 0 to 10000000"))?;
            }
            "window-bytes" => {
                self.window_bytes =
                    number(value, 1024, 1 << 30).ok_or_else(|| bad("a number of bytes from 1024 to 1073741824"))?;
            }
            "rate-messages" => {
                self.rate_messages = number(value, 0, u32::MAX).ok_or_else(|| bad("a number from 0 to 4294967295"))?;
            }
            "rate-bytes" => {
                self.rate_bytes = number(value, 0, u32::MAX).ok_or_else(|| bad("a number of bytes from 0 to 4294967295"))?;
            }
            "ordering" => {
                self.ordering = match value {
                    "partition" => Ordering::Partition,
                    "none" => Ordering::None,
                    _ => return Err(bad("partition or none")),
                };
            }
            "calls" => self.calls = number(value, 1, 16).ok_or_else(|| bad("a number from 1 to 16"))?,
            "max-span" => {
                self.max_span = number(value, 1, 1_000_000).ok_or_else(|| bad("a number from 1 to 1000000"))?;
            }
            _ => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }

    /// Whether every option is within its limits, however it came here, and what concerns several at once.
    pub fn check(&self) -> Result<(), OptionError> {
        let mut probe = Self::default();
        for (name, value) in self.limited() {
            probe.set(name, &value)?;
        }
        if self.retry_min > self.retry_max {
            return Err(OptionError::RetryOrder { min: self.retry_min, max: self.retry_max });
        }
        Ok(())
    }
}

impl SubscriptionOptions {
    /// The options that have limits, as texts.
    fn limited(&self) -> [(&'static str, String); 12] {
        let duration = hqueue_protocol::duration::format;
        [
            ("retry-min", duration(self.retry_min)),
            ("retry-max", duration(self.retry_max)),
            ("call-timeout", duration(self.call_timeout)),
            ("batch-messages", self.batch_messages.to_string()),
            ("batch-bytes", self.batch_bytes.to_string()),
            ("max-attempts", self.max_attempts.to_string()),
            ("max-dead-in-a-row", self.max_dead_in_a_row.to_string()),
            ("window-messages", self.window_messages.to_string()),
            ("window-bytes", self.window_bytes.to_string()),
            ("calls", self.calls.to_string()),
            ("max-span", self.max_span.to_string()),
            ("rate-messages", self.rate_messages.to_string()),
        ]
    }
}

fn number(text: &str, min: u32, max: u32) -> Option<u32> {
    text.parse().ok().filter(|n| (min..=max).contains(n))
}

fn duration(text: &str, min_ms: u64, max_ms: u64) -> Option<Duration> {
    let allowed = Duration::from_millis(min_ms)..=Duration::from_millis(max_ms);
    hqueue_protocol::duration::parse(text).ok().filter(|d| allowed.contains(d))
}

/// Durations stand as whole milliseconds in the options node.
mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
