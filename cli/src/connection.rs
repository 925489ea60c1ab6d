//! The flags of every command that talks to a broker.

use std::time::Duration;

use clap::{Args, ValueEnum};
use hqueue::{Error, HQueue};

use crate::failure::Failure;

/// A command ends within 3 s if there is no broker.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(2500);

/// Which broker, and how its answers are shown.
#[derive(Args, Debug)]
pub(crate) struct Connection {
    /// The broker, or several of which the first that answers is used: hqueue://HOST:PORT[,HOST:PORT].
    #[arg(long, value_name = "URL", env = "HQUEUE_CONNECT", default_value = "hqueue://127.0.0.1:9190")]
    connect: String,
    /// How data is printed.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// How data stands on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, and for tools that work line by line.
    Text,
    /// One object, or one a line.
    Json,
}

impl Connection {
    pub(crate) async fn open(&self) -> Result<HQueue, Failure> {
        HQueue::connect_within(&self.connect, CONNECT_TIMEOUT).await.map_err(|error| match error {
            Error::Invalid(reason) => Failure::Usage(reason),
            other => other.into(),
        })
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}
