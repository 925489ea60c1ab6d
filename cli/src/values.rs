//! What values of flags may be. An error says what is allowed, so that nobody has to look it up; clap names the flag and the value.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use hqueue_protocol::duration::{self, format};
use hqueue_protocol::limits::MAX_TOPIC_BYTES;
use hqueue_protocol::names::{QueueName, SubscriberName};

/// A whole number within limits, of a kind (`of bytes`) that may be left out.
pub(crate) fn number<T>(least: i128, most: i128, kind: &'static str) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: TryFrom<i128>,
{
    move |text| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let number = if is_number { text.parse::<i128>().ok() } else { None };
        let fits = number.filter(|n| (least..=most).contains(n)).and_then(|n| T::try_from(n).ok());
        fits.ok_or_else(|| {
            let space = if kind.is_empty() { "" } else { " " };
            // Where the end is only that of the type, it helps nobody.
            let limits = if most >= UNLIMITED { format!(", {least} or more") } else { format!(" from {least} to {most}") };
            format!("it is a whole number{space}{kind}{limits}, in digits, without a unit")
        })
    }
}

/// No limit but that of the type.
pub(crate) const UNLIMITED: i128 = i64::MAX as i128;

/// How long messages are kept.
pub(crate) fn ttl(text: &str) -> Result<i64, String> {
    number(1, UNLIMITED, "of seconds")(text).map_err(|error| match duration::parse(text).map(|length| length.as_secs()) {
        Ok(seconds @ 1..) => format!("{error}: {text} is {seconds}"),
        _ => format!("{error}: a day is 86400"),
    })
}

/// The number of a partition.
pub(crate) fn partition(text: &str) -> Result<i16, String> {
    number(0, (i16::MAX - 1).into(), "")(text)
}

/// A length of time within limits.
pub(crate) fn length(least: Duration, most: Duration) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    move |text| {
        let fits = duration::parse(text).ok().filter(|length| (least..=most).contains(length));
        let (least, most) = (format(least), format(most));
        fits.ok_or_else(|| format!("it is a length of time from {least} to {most}: a whole number and ms, s, m, h or d"))
    }
}

/// Where to listen.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "it is IP:PORT, such as 127.0.0.1:9190, 0.0.0.0:9190 (every address) or [::1]:9190; an IP address and no name, \
         the port from 0 (a free one) to 65535"
            .to_owned()
    })
}

/// Where somebody else is reached.
pub(crate) fn address(text: &str) -> Result<String, String> {
    if hqueue::is_address(text) {
        return Ok(text.to_owned());
    }
    Err("this address is none: it is HOST:PORT, such as 10.0.0.5:9500, consumer.example:9500 or [::1]:9500, the port from 1 to 65535".to_owned())
}

/// The name of a queue that is there.
pub(crate) fn queue(text: &str) -> Result<String, String> {
    QueueName::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// The name of a queue that is to be made.
pub(crate) fn new_queue(text: &str) -> Result<String, String> {
    QueueName::parse_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// The name of a subscriber.
pub(crate) fn subscriber(text: &str) -> Result<String, String> {
    SubscriberName::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A topic: any bytes, within their limits.
pub(crate) fn topic() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|text| if is_topic(&text) { Ok(text) } else { Err(size_of_topic(&text)) })
}

fn is_topic(text: &OsStr) -> bool {
    (1..=MAX_TOPIC_BYTES).contains(&text.as_bytes().len())
}

fn size_of_topic(text: &OsStr) -> String {
    format!("this topic has {} bytes, a topic has 1 to {MAX_TOPIC_BYTES}", text.as_bytes().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_and_within_limits() {
        let bytes = number::<u32>(1024, 16_000_000, "of bytes");
        assert_eq!((bytes("1024"), bytes("16000000")), (Ok(1024), Ok(16_000_000)));
        for bad in
            ["1023", "16000001", "1M", "1k", "1.5", "", "-1", "+1024", "1_024", "99999999999999999999999999999999999999999", "٣"]
        {
            let error = bytes(bad).unwrap_err();
            assert!(error.contains("number of bytes from 1024 to 16000000"), "{bad}: {error}");
        }
        assert_eq!((partition("0"), partition("32766")), (Ok(0), Ok(32_766)));
        assert!(partition("32767").unwrap_err().contains("from 0 to 32766"));
        assert!(number::<i64>(1, UNLIMITED, "")("0").unwrap_err().contains("a whole number, 1 or more"));
        assert!(ttl("1d").unwrap_err().ends_with("1d is 86400") && ttl("x").unwrap_err().ends_with("a day is 86400"));
        assert_eq!(ttl("60"), Ok(60));
        assert_eq!(number(1, UNLIMITED, "")("9223372036854775807"), Ok(i64::MAX));
    }

    #[test]
    fn lengths_of_time_have_units_and_limits() {
        let length = length(Duration::from_millis(100), Duration::from_secs(3600));
        assert_eq!((length("100ms"), length("1h")), (Ok(Duration::from_millis(100)), Ok(Duration::from_secs(3600))));
        for bad in ["99ms", "2h", "5", "1min", "", "-1s", "1h30m"] {
            assert!(length(bad).unwrap_err().contains("from 100ms to 1h: a whole number and ms, s, m, h or d"), "{bad}");
        }
    }

    #[test]
    fn addresses_say_their_form_and_the_ports() {
        assert!(listen("[::1]:0").is_ok() && listen("0.0.0.0:9190").is_ok());
        for bad in ["localhost:9190", "9190", ":9190", "127.0.0.1", "127.0.0.1:65536"] {
            assert!(listen(bad).unwrap_err().contains("65535"), "{bad}");
        }
        assert!(address("localhost:9500").is_ok() && address("[::1]:1").is_ok());
        for bad in ["nonsense", "a:0", "::1:80", "a:65536", "http://a:1"] {
            assert!(address(bad).unwrap_err().contains("from 1 to 65535"), "{bad}");
        }
    }

    #[test]
    fn topics_have_a_size() {
        for (bytes, fits) in [(0, false), (1, true), (255, true), (256, false)] {
            let text = OsString::from("t".repeat(bytes));
            assert_eq!(is_topic(&text), fits);
            assert!(size_of_topic(&text).contains("255") && size_of_topic(&text).contains("topic"));
        }
    }
}
