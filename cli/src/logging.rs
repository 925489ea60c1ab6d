//! Where log lines go: standard error, as text or JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Which lines are written, such as `info` or `warn,hqueue_broker=debug`.
const FILTER: &str = "HQUEUE_LOG";
/// `text` or `json`.
const FORMAT: &str = "HQUEUE_LOG_FORMAT";

/// Starts logging, by default from this level on.
pub(crate) fn start(default: &str) -> Result<(), Failure> {
    let filter = std::env::var(FILTER).unwrap_or_else(|_| default.to_owned());
    let filter = EnvFilter::try_new(&filter).map_err(|error| Failure::Usage(format!("{FILTER} is {filter:?}: {error}")))?;
    // A line that cannot be written has nowhere to be complained about; the library would panic.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    match std::env::var(FORMAT).as_deref() {
        Ok("json") => builder.json().init(),
        Ok("text") | Err(_) => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
        Ok(other) => return Err(Failure::Usage(format!("{FORMAT} is {other:?}; it can be text or json"))),
    }
    Ok(())
}
