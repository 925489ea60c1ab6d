//! Runs lines, one after the other.

use std::io::{self, Write};
use std::pin::Pin;

use futures_util::FutureExt;

use super::parser::{Input, Parser};
use super::session::Session;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::signals::Signals;

#[derive(Debug)]
pub(super) struct Runner {
    parser: Parser,
    session: Session,
    signals: Signals,
}

/// How a line ended.
#[derive(Debug)]
pub(super) enum Ended {
    Done,
    /// The shell is left.
    Exit,
    /// A signal came meanwhile; what ran was left.
    Signal(&'static str),
    Failed(Failure),
}

impl Runner {
    pub(super) fn new(connection: Connection, reads_commands: bool) -> Result<Self, Failure> {
        let parser = Parser::new(&connection);
        Ok(Self { parser, session: Session::new(connection, reads_commands), signals: Signals::new()? })
    }

    pub(super) const fn session(&self) -> &Session {
        &self.session
    }

    pub(super) const fn parser(&self) -> &Parser {
        &self.parser
    }

    /// The next signal, while no command runs. Cancel-safe.
    pub(super) async fn signal(&mut self) -> &'static str {
        self.signals.next().await
    }

    pub(super) async fn run(&mut self, line: &str) -> Ended {
        let command = match self.parser.parse(line) {
            Ok(Input::Nothing) => return Ended::Done,
            Ok(Input::Exit) => return Ended::Exit,
            Ok(Input::Help(text)) => return io::stdout().lock().write_all(text.as_bytes()).map_err(Failure::from).into(),
            Ok(Input::Run(command)) => command,
            Err(error) => return Ended::Failed(Failure::Failed(error.show(line))),
        };
        let ends_by_itself = command.handles_signals();
        // In a box: a shell is a command, too.
        let running: Pin<Box<dyn Future<Output = Result<(), Failure>>>> = Box::pin(command.run());
        let running = self.session.run(running);
        if ends_by_itself {
            let ended = running.await;
            // The same signal came here. ^C was for the command alone.
            return match self.signals.next().now_or_never() {
                Some(name @ "SIGTERM") if ended.is_ok() => Ended::Signal(name),
                _ => ended.into(),
            };
        }
        tokio::select! {
            ended = running => ended.into(),
            name = self.signals.next() => Ended::Signal(name),
        }
    }
}

impl From<Result<(), Failure>> for Ended {
    fn from(ended: Result<(), Failure>) -> Self {
        match ended {
            Ok(()) => Self::Done,
            Err(failure) => Self::Failed(failure),
        }
    }
}
