//! SIGINT and SIGTERM: the first asks for an orderly end, a second one ends the process at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;
use crate::output::say;

/// Both signals, from the moment it was made.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::failed);
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for one; returns its name. Cancel-safe.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Does what has to be done before the end, unless another signal comes.
    pub(crate) async fn or_end(&mut self, orderly: impl Future<Output = ()>) {
        tokio::select! {
            () = orderly => {}
            name = self.next() => {
                say(format_args!("hqueue: {name} again, ending at once"));
                std::process::exit(1);
            }
        }
    }
}
