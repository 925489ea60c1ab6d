//! The commands, a file each.

mod add_subscriber;
mod create;
mod delete_subscriber;
mod demo;
mod describe;
mod disable;
mod drop;
mod enable;
mod list;
mod list_subscribers;
mod locations;
mod put;
mod scan;
mod standalone;
mod status;
mod subscribe;
mod truncate_queue;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// HQueue: a persistent message queue that pushes.
///
/// Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "hqueue", bin_name = "hqueue", version, after_help = AFTER_HELP, max_term_width = 120)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str =
    "Positions, for --from, --start and --stop: a message's id (1700000000000:12), milliseconds since 1970, a time \
(2026-03-29T02:30:00Z), -10m, earliest, latest.

HQUEUE_CONNECT names the broker, HQUEUE_LOG what is logged (such as debug), HQUEUE_LOG_FORMAT how (text or json).";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Standalone(standalone::Standalone),
    Put(put::Put),
    Scan(scan::Scan),
    Subscribe(subscribe::Subscribe),
    Status(status::Status),
    Create(create::Create),
    List(list::List),
    Describe(describe::Describe),
    Disable(disable::Disable),
    Enable(enable::Enable),
    Drop(drop::Drop),
    #[command(name = "truncate_queue")]
    TruncateQueue(truncate_queue::TruncateQueue),
    #[command(name = "add_subscriber")]
    AddSubscriber(Box<add_subscriber::AddSubscriber>),
    #[command(name = "delete_subscriber")]
    DeleteSubscriber(delete_subscriber::DeleteSubscriber),
    #[command(name = "list_subscribers")]
    ListSubscribers(list_subscribers::ListSubscribers),
    Locations(locations::Locations),
}

impl Command {
    /// From which level on log lines are written, unless the user says otherwise.
    pub(crate) fn default_log(&self) -> &'static str {
        match self {
            Self::Standalone(_) => "info",
            // What cannot be printed is reported by the command.
            Self::Subscribe(_) => "warn,hqueue::subscriber::service=error",
            _ => "warn",
        }
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Demo(command) => command.run().await,
            Self::Standalone(command) => command.run().await,
            Self::Put(command) => command.run().await,
            Self::Scan(command) => command.run().await,
            Self::Subscribe(command) => command.run().await,
            Self::Status(command) => command.run().await,
            Self::Create(command) => command.run().await,
            Self::List(command) => command.run().await,
            Self::Describe(command) => command.run().await,
            Self::Disable(command) => command.run().await,
            Self::Enable(command) => command.run().await,
            Self::Drop(command) => command.run().await,
            Self::TruncateQueue(command) => command.run().await,
            Self::AddSubscriber(command) => command.run().await,
            Self::DeleteSubscriber(command) => command.run().await,
            Self::ListSubscribers(command) => command.run().await,
            Self::Locations(command) => command.run().await,
        }
    }
}

/// `KEY=VALUE` of a flag.
fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it is written KEY=VALUE".to_owned()),
    }
}
