//! Every option of a server, with its limits.

use std::fmt::Display;
use std::time::Duration;

use crate::limits::MAX_REQUEST_BYTES;

/// How a server treats its connections. [`Default`] gives what each field's comment says.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Connections at a time; one more is closed as soon as it is accepted. Default 10,000; 1 to 1,000,000.
    pub max_connections: usize,
    /// Bytes of one request, without the four bytes of a frame's length. Default 16 MiB; 1 KiB to 1 GiB.
    pub max_request_bytes: usize,
    /// Bytes of requests that have not arrived whole and of replies that were not read yet, of all connections together; the first
    /// [`FREE_BYTES`](super::FREE_BYTES) of each connection are not counted. A connection that would go beyond is closed. Default
    /// 256 MiB; `max_request_bytes` or more.
    pub max_buffered_bytes: usize,
    /// Calls of one connection under way together, if their methods overlap. While so many are, nothing more is read from it.
    /// Default 64; 1 to 4096.
    pub pipeline: usize,
    /// How long a peer may be silent before its first byte, and in the middle of a request. Default 30 s; 1 ms to 1 h.
    pub request_stall: Duration,
    /// How long a peer may read nothing of a reply that waits for it. Default 30 s; 1 ms to 1 h.
    pub write_stall: Duration,
    /// How long one request may take to arrive whole and a run of replies to be read, whatever its progress, plus the time that
    /// its bytes take at `min_rate`. Default 60 s; 1 ms to 1 h.
    pub transfer_time: Duration,
    /// Bytes a second for which `transfer_time` is prolonged. Default 16 KiB; 1 or more.
    pub min_rate: u32,
    /// How long a connection without a call may stay. Default 10 min; 1 ms to 30 days.
    pub idle_timeout: Duration,
    /// At a stop, how long calls in hand may take to end. Default 5 s; 0 to 1 h.
    pub stop_grace: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_request_bytes: MAX_REQUEST_BYTES,
            max_buffered_bytes: 256 << 20,
            pipeline: 64,
            request_stall: Duration::from_secs(30),
            write_stall: Duration::from_secs(30),
            transfer_time: Duration::from_secs(60),
            min_rate: 16 << 10,
            idle_timeout: Duration::from_secs(600),
            stop_grace: Duration::from_secs(5),
        }
    }
}

/// An option is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} is {value}; it can be {min} to {max}")]
pub struct BadServerOption {
    /// The field's name.
    pub option: &'static str,
    pub value: String,
    pub min: String,
    pub max: String,
}

impl ServerOptions {
    /// Compares every option with its limits.
    pub(super) fn check(&self) -> Result<(), BadServerOption> {
        const MS: Duration = Duration::from_millis(1);
        const HOUR: Duration = Duration::from_secs(3600);
        within("max_connections", self.max_connections, 1, 1_000_000)?;
        within("max_request_bytes", self.max_request_bytes, 1 << 10, 1 << 30)?;
        within("max_buffered_bytes", self.max_buffered_bytes, self.max_request_bytes, isize::MAX.unsigned_abs())?;
        within("pipeline", self.pipeline, 1, 4096)?;
        within("min_rate", self.min_rate, 1, u32::MAX)?;
        let times = [
            ("request_stall", self.request_stall, MS, HOUR),
            ("write_stall", self.write_stall, MS, HOUR),
            ("transfer_time", self.transfer_time, MS, HOUR),
            ("idle_timeout", self.idle_timeout, MS, HOUR * 24 * 30),
            ("stop_grace", self.stop_grace, Duration::ZERO, HOUR),
        ];
        times.into_iter().try_for_each(|(option, value, min, max)| {
            let refused = || bad(option, format!("{value:?}"), format!("{min:?}"), format!("{max:?}"));
            if (min..=max).contains(&value) { Ok(()) } else { Err(refused()) }
        })
    }

    /// How often deadlines are looked at: an eighth of the shortest, 10 ms to 1 s.
    pub(super) fn sweep_period(&self) -> Duration {
        let shortest = self.request_stall.min(self.write_stall).min(self.transfer_time).min(self.idle_timeout);
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}

fn within<T: PartialOrd + Display>(option: &'static str, value: T, min: T, max: T) -> Result<(), BadServerOption> {
    if (&min..=&max).contains(&&value) { Ok(()) } else { Err(bad(option, value.to_string(), min.to_string(), max.to_string())) }
}

fn bad(option: &'static str, value: String, min: String, max: String) -> BadServerOption {
    BadServerOption { option, value, min, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_limits() {
        assert_eq!(ServerOptions::default().check(), Ok(()));
        assert_eq!(ServerOptions::default().sweep_period(), Duration::from_secs(1));
    }

    #[test]
    fn a_refusal_names_the_option_and_its_limits() {
        let options = ServerOptions { pipeline: 0, ..ServerOptions::default() };
        assert_eq!(options.check().unwrap_err().to_string(), "pipeline is 0; it can be 1 to 4096");
        let options = ServerOptions { idle_timeout: Duration::ZERO, ..ServerOptions::default() };
        assert_eq!(options.check().unwrap_err().to_string(), "idle_timeout is 0ns; it can be 1ms to 2592000s");
        let options = ServerOptions { max_buffered_bytes: 1, ..ServerOptions::default() };
        assert_eq!(options.check().unwrap_err().option, "max_buffered_bytes");
    }
}
