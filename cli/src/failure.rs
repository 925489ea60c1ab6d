//! Why a command ended otherwise than it should have, and the exit code that says so.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use crate::output::say;

/// What is not success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense: exit code 2.
    Usage(String),
    /// Refused, or failed: exit code 1.
    Failed(String),
    /// Whoever read our output has gone: nothing more to say, exit code 0.
    OutputClosed,
}

impl Failure {
    pub(crate) fn failed(reason: impl Display) -> Self {
        Self::Failed(reason.to_string())
    }

    pub(crate) fn usage(reason: impl Display) -> Self {
        Self::Usage(reason.to_string())
    }

    /// Tells the user.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Usage(reason) => {
                say(format_args!("hqueue: {reason}\n\nFor more information, try '--help'."));
                ExitCode::from(2)
            }
            Self::Failed(reason) => {
                say(format_args!("hqueue: {reason}"));
                ExitCode::FAILURE
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<hqueue::Error> for Failure {
    fn from(error: hqueue::Error) -> Self {
        Self::failed(error)
    }
}

/// Of writing to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::failed(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}
