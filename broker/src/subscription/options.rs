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
pub const OPTION_NAMES: [&str; 7] =
    ["retry-min", "retry-max", "call-timeout", "transport", "protocol", "batch-messages", "batch-bytes"];

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
                self.retry_min = duration(value, 10, 3_600_000).ok_or_else(|| bad("a duration of 10ms to 1h"))?;
            }
            "retry-max" => {
                self.retry_max = duration(value, 10, 3_600_000).ok_or_else(|| bad("a duration of 10ms to 1h"))?;
            }
            "call-timeout" => {
                self.call_timeout = duration(value, 100, 3_600_000).ok_or_else(|| bad("a duration of 100ms to 1h"))?;
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
            _ => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }

    /// What concerns several options at once.
    pub fn check(&self) -> Result<(), OptionError> {
        if self.retry_min > self.retry_max {
            return Err(OptionError::RetryOrder { min: self.retry_min, max: self.retry_max });
        }
        Ok(())
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
