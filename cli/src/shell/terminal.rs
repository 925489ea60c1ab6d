//! The terminal as it was before the shell: a signal that ends us while a line is edited would leave it without echo.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

#[derive(Debug)]
pub(super) struct Terminal {
    before: Option<Termios>,
}

impl Terminal {
    pub(super) fn remember() -> Self {
        Self { before: tcgetattr(io::stdin()).ok() }
    }

    pub(super) fn restore(&self) {
        if let Some(before) = &self.before {
            // If it is gone, nothing is left to restore.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
