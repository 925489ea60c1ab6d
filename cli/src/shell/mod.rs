//! `hqueue shell`: the commands of the command line, a line each, in the original's form or the plain one.
//!
//! `scanner` makes words of a line, `line` tells the two forms apart, `arguments` turns the original's form into the plain one by the
//! table of commands, `parser` hands that to clap. What comes out runs as it does on the command line, over one connection (`session`).

mod arguments;
mod complete;
mod error;
mod history;
mod interactive;
mod line;
mod names;
mod parser;
mod quotes;
mod runner;
mod scanner;
mod script;
mod session;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use self::session::Session;

use std::io::{self, IsTerminal};

use clap::Args;

use self::runner::Runner;
use crate::connection::Connection;
use crate::failure::Failure;

/// Run commands, a line each: typed, from standard input, or given with -e.
///
/// Typed lines have history and completion (TAB), and are kept in $XDG_STATE_HOME/hqueue/history (~/.local/state/hqueue/history), but for
/// those with a password. ^C leaves a line, or a command that runs; ^D leaves the shell. Commands that destroy do not ask. The first
/// command of a script that fails ends it, with exit code 1 and the number of its line. "help" lists the commands.
#[derive(Args, Debug)]
pub(crate) struct Shell {
    /// Run this line; may be given several times.
    #[arg(short = 'e', long = "execute", value_name = "COMMAND", allow_hyphen_values = true)]
    commands: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Shell {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let reads_commands = self.commands.is_empty();
        let runner = Runner::new(self.connection, reads_commands)?;
        if !reads_commands {
            script::given(runner, &self.commands).await
        } else if io::stdin().is_terminal() {
            interactive::run(runner).await
        } else {
            script::standard_input(runner).await
        }
    }
}
