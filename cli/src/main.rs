//! The `hqueue` binary: reads the command line, runs one command, says how it ended.

mod check;
mod command;
mod confirm;
mod connection;
mod failure;
mod input;
mod logging;
mod output;
mod progress;
mod shell;
mod signals;
mod table;
mod values;

use std::process::ExitCode;
use std::time::Duration;

use clap::FromArgMatches;

use crate::command::Arguments;
use crate::failure::Failure;

fn main() -> ExitCode {
    let matches = table::command_line().get_matches_from(table::help_words(std::env::args_os()));
    let Arguments { command } = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let ended = logging::start(command.default_log()).and_then(|()| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::from)?;
        let ended = runtime.block_on(command.run());
        // A thread may still wait for a line of standard input.
        runtime.shutdown_timeout(Duration::ZERO);
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
