//! What is measured.

mod allocations;
mod backlog;
mod catch_up;
mod end_to_end;
mod fanout;
mod file_queue;
mod flow;
mod goals;
mod growth;
mod hbase;
mod idle;
mod push_latency;
mod put_latency;
mod restart;
mod restart_peers;
mod rounds;
mod slow_subscriber;
mod syncs;
mod throughput;

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;

use crate::failure::Outcome;
use crate::report::ScenarioReport;
use crate::sides::Places;

/// A scenario's name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// 500 messages of 100 B a put, 4 producers with 4 puts in flight, end to end
    #[value(name = "tput-100b")]
    Tput100b,
    /// 100 messages of 1 KiB a put, likewise
    #[value(name = "tput-1k")]
    Tput1k,
    /// 4 messages of 64 KiB a put, likewise
    #[value(name = "tput-64k")]
    Tput64k,
    /// The same as the three before, acknowledged when written
    TputAsync,
    /// One message of 1 KiB a put, from 1 and from 64 clients
    PutLat,
    /// 1,000, 5,000 and 20,000 messages of 1 KiB a second by a schedule, in both classes: their age on arrival
    #[value(name = "e2e-fixed")]
    EndToEnd,
    /// How often each side syncs, in both classes, counted from outside
    Syncs,
    /// From a put to its push on an idle broker, against a bare loopback call
    PushLat,
    /// 1,000 partitions and 1,000 subscriptions without traffic
    #[value(name = "idle-1000")]
    Idle1000,
    /// From the start of the process to the first put and the first push, over much data
    Restart,
    /// 1 to 16 subscribers of everything at 5,000 messages a second: what one more costs
    Fanout,
    /// Four subscribers, of which one is slow and one never answers: what becomes of the others
    SlowSub,
    /// A backlog of `--store-gib` replayed beside 5,000 new messages a second
    Catchup,
    /// Cost against the number of subscribers, of partitions, and what is stored
    Growth,
    /// Memory while a backlog grows and while it drains
    Backlog,
    /// Allocations of the broker a message
    Allocations,
    /// The queue in a folder, without a broker, against a plain file that is appended to and synced
    FileQueue,
    /// Messages in the HBase of `--hbase`, beside rows that are only written; not without that option
    #[value(name = "hbase")]
    HBase,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

/// How long and how often.
#[derive(Clone, Debug)]
pub struct Bench {
    pub places: Places,
    pub rounds: usize,
    /// How long producers put in one measurement.
    pub time: Duration,
    /// Not measured, before it.
    pub warm_up: Duration,
    /// So many puts instead, for a short look.
    pub puts: Option<u64>,
    /// Ports of the receiver, each an endpoint of HQueue's subscriber. The floor has a connection a partition anyway.
    pub endpoints: usize,
    /// Queues over which the throughput scenarios spread, each with 8 partitions.
    pub queues: u16,
    /// For `restart`, `catchup`, `backlog` and `growth`.
    pub store_bytes: u64,
    /// For `idle-1000`: how long nothing happens.
    pub idle: Duration,
    /// For `idle-1000`: of how many partitions each subscription is.
    pub idle_partitions: u16,
}

/// Runs one scenario; some give several reports.
pub async fn run(scenario: Scenario, bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    match scenario {
        Scenario::Tput100b => throughput::run(bench, &throughput::SMALL).await,
        Scenario::Tput1k => throughput::run(bench, &throughput::MEDIUM).await,
        Scenario::Tput64k => throughput::run(bench, &throughput::LARGE).await,
        Scenario::TputAsync => throughput::run_async(bench).await,
        Scenario::PutLat => put_latency::run(bench).await,
        Scenario::EndToEnd => end_to_end::run(bench).await,
        Scenario::Syncs => syncs::run(bench).await,
        Scenario::PushLat => push_latency::run(bench).await,
        Scenario::Idle1000 => idle::run(bench).await,
        Scenario::Restart => restart::run(bench).await,
        Scenario::Fanout => fanout::run(bench).await,
        Scenario::SlowSub => slow_subscriber::run(bench).await,
        Scenario::Catchup => catch_up::run(bench).await,
        Scenario::Growth => growth::run(bench).await,
        Scenario::Backlog => backlog::run(bench).await,
        Scenario::Allocations => allocations::run(bench).await,
        Scenario::FileQueue => file_queue::run(bench),
        Scenario::HBase => hbase::run(bench).await,
    }
}
