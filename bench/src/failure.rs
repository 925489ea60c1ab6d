//! Why there is no figure.

use std::io;

/// What ended a measurement.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{doing}: {error}")]
    Io { doing: String, error: io::Error },
    /// What is measured did not do what it should.
    #[error("{0}")]
    Side(String),
    /// A message was lost, came twice out of order or came damaged: the run has no figure.
    #[error("no figure: {0}")]
    Invalid(String),
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Usage(String),
}

pub type Outcome<T> = Result<T, Failure>;

/// Says what was being done when it failed.
pub trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Outcome<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(|error| Failure::Io { doing: what(), error })
    }
}
