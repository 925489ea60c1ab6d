//! The commands, a file each.

mod add_subscriber;
mod balancer;
mod broker;
mod check;
mod completions;
mod create;
mod delete_subscriber;
mod demo;
mod describe;
mod disable;
mod dlq;
mod drop;
mod enable;
mod explain;
mod list;
mod list_subscribers;
mod locations;
mod move_partition;
mod pause;
mod poll;
mod put;
mod resume;
mod scan;
mod seek;
mod serving;
mod set_subscriber;
mod standalone;
mod status;
mod subscribe;
mod subscription_options;
mod truncate_queue;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::shell::Shell;

/// HQueue: a persistent message queue that pushes.
///
/// Data goes to standard output, everything else to standard error. Exit codes: 0 done; 1 refused by a broker, or failed; 2 wrong usage: a word
/// that no broker had to be asked about, such as an unknown flag, a name or a value outside its limits, a missing --yes.
#[derive(Debug, Parser)]
#[command(name = "hqueue", bin_name = "hqueue", version, after_help = AFTER_HELP, max_term_width = 120)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str =
    "Positions, for --from, --start and --stop: a message's id (1700000000000:12), milliseconds since 1970, a time \
(2026-03-29T02:30:00Z), -10m, earliest, latest.

HQUEUE_CONNECT names the broker or its ZooKeeper (as --connect does), HQUEUE_LOG what is logged (such as debug), HQUEUE_LOG_FORMAT how (text or json).";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Standalone(standalone::Standalone),
    Broker(Box<broker::Broker>),
    Put(put::Put),
    Scan(scan::Scan),
    Subscribe(subscribe::Subscribe),
    Poll(poll::Poll),
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
    #[command(name = "set_subscriber")]
    SetSubscriber(Box<set_subscriber::SetSubscriber>),
    #[command(name = "delete_subscriber")]
    DeleteSubscriber(delete_subscriber::DeleteSubscriber),
    #[command(name = "list_subscribers")]
    ListSubscribers(list_subscribers::ListSubscribers),
    Check(check::Check),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Seek(seek::Seek),
    Dlq(Box<dlq::Dlq>),
    Explain(explain::Explain),
    Locations(locations::Locations),
    Move(move_partition::Move),
    Balancer(balancer::Balancer),
    Shell(Shell),
    Completions(completions::Completions),
}

impl Command {
    /// From which level on log lines are written, unless the user says otherwise.
    pub(crate) fn default_log(&self) -> &'static str {
        match self {
            Self::Standalone(_) | Self::Broker(_) => "info",
            // What cannot be printed is reported by the command.
            Self::Subscribe(_) => "warn,hqueue::subscriber::service=error",
            _ => "warn",
        }
    }

    /// It ends in order on SIGINT and SIGTERM by itself; others are just left.
    pub(crate) const fn handles_signals(&self) -> bool {
        matches!(self, Self::Subscribe(_))
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Demo(command) => command.run().await,
            Self::Standalone(command) => command.run().await,
            Self::Broker(command) => command.run().await,
            Self::Put(command) => command.run().await,
            Self::Scan(command) => command.run().await,
            Self::Subscribe(command) => command.run().await,
            Self::Poll(command) => command.run().await,
            Self::Status(command) => command.run().await,
            Self::Create(command) => command.run().await,
            Self::List(command) => command.run().await,
            Self::Describe(command) => command.run().await,
            Self::Disable(command) => command.run().await,
            Self::Enable(command) => command.run().await,
            Self::Drop(command) => command.run().await,
            Self::TruncateQueue(command) => command.run().await,
            Self::AddSubscriber(command) => command.run().await,
            Self::SetSubscriber(command) => command.run().await,
            Self::DeleteSubscriber(command) => command.run().await,
            Self::ListSubscribers(command) => command.run().await,
            Self::Check(command) => command.run().await,
            Self::Pause(command) => command.run().await,
            Self::Resume(command) => command.run().await,
            Self::Seek(command) => command.run().await,
            Self::Dlq(command) => command.run().await,
            Self::Explain(command) => command.run().await,
            Self::Locations(command) => command.run().await,
            Self::Move(command) => command.run().await,
            Self::Balancer(command) => command.run().await,
            Self::Shell(command) => command.run().await,
            Self::Completions(command) => command.run(),
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
