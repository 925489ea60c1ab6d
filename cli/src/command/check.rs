//! `hqueue check`

use std::time::Duration;

use clap::Args;

use crate::check::{Plan, print_stranger, print_subscriber};
use crate::connection::Format;
use crate::failure::Failure;
use crate::values;

/// Say whether an endpoint is a subscriber, and how it takes a broker's calls.
///
/// It is called directly, as a broker calls it, and no broker has to be there: which dialect it speaks, how long an empty call takes, whether
/// it serves two connections at once, and what follows for the options of add_subscriber. Only calls without messages are sent unless
/// --batch or --large ask for more; a subscriber answers them with 0. One that needs more than the second that a broker's questions have is
/// asked once more, with more time. What is none is named by what it looks like. Exit code 0: it is a subscriber, whatever the trials found;
/// 1: it is none. --format json prints the same as an object.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Where the endpoint listens.
    #[arg(value_name = "HOST:PORT", value_parser = values::address)]
    address: String,
    /// Also send so many small test messages in one call: topic hq-check, a header hq-check, partition 0. The consumer does with them what
    /// it does with messages.
    #[arg(long, value_name = "N", value_parser = values::number::<u32>(1, 100_000, "of messages"))]
    batch: Option<u32>,
    /// Also send so many bytes in one call, in such messages of at most 1 MiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    large: Option<usize>,
    /// Also leave a connection without calls for so long, and call again.
    #[arg(long, value_name = "D", value_parser = values::length(Duration::from_secs(1), Duration::from_secs(3600)))]
    idle: Option<Duration>,
    /// How long a call may take.
    #[arg(long, value_name = "D", default_value = "30s", value_parser = values::length(Duration::from_millis(100), Duration::from_secs(3600)))]
    call_timeout: Duration,
    /// How data is printed.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Check {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self { address, batch, large, idle, call_timeout, format } = self;
        let plan = Plan { address, call_timeout, batch, large, idle };
        match plan.run().await {
            Ok(found) => print_subscriber(format, &found),
            Err(stranger) => print_stranger(format, &plan.address, &stranger),
        }
    }
}

/// The limits of `--batch-bytes`.
fn size(text: &str) -> Result<usize, String> {
    const LEAST: usize = 1024;
    const MOST: usize = 16_000_000;
    let (digits, factor) = match (text.strip_suffix("KiB"), text.strip_suffix("MiB")) {
        (Some(digits), _) => (digits, 1 << 10),
        (_, Some(digits)) => (digits, 1 << 20),
        _ => (text, 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let bytes = if is_number { digits.parse::<usize>().ok().and_then(|number| number.checked_mul(factor)) } else { None };
    bytes
        .filter(|bytes| (LEAST..=MOST).contains(bytes))
        .ok_or_else(|| format!("it is a number of bytes from {LEAST} to {MOST}, or of KiB or MiB, such as 512KiB, 8MiB or 15MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_limits() {
        for (text, bytes) in [("1024", 1024), ("1KiB", 1024), ("8MiB", 8 << 20), ("15MiB", 15 << 20), ("16000000", 16_000_000)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for bad in
            ["1023", "0", "", "MiB", "16MiB", "8M", "8 MiB", "-1MiB", "1.5MiB", "99999999999999999999MiB", "17592186044416MiB"]
        {
            assert!(size(bad).unwrap_err().contains("from 1024 to 16000000"), "{bad}");
        }
    }
}
