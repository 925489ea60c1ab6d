//! `hqueue-bench`: see the library.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand, ValueEnum};
use hqueue_bench::failure::{Doing, Failure, Outcome};
use hqueue_bench::hbase::HBase;
use hqueue_bench::peers::Peer;
use hqueue_bench::report::{Machine, Report, Took, print, write_page};
use hqueue_bench::scenarios::{self, Bench, Scenario};
use hqueue_bench::sides::Places;
use hqueue_bench::{echo, floor};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Parser)]
#[command(version, about = "Measures HQueue against the floor of the machine")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures; without names, everything
    Run(RunOptions),
    /// Makes a page with tables and pictures from what `run --json` has written
    Report {
        /// JSON files of runs, or `rounds.json` of a page; of a scenario in several, all are shown
        #[arg(required = true)]
        json: Vec<PathBuf>,
        /// The page; its pictures, and all rounds as `rounds.json`, go into a folder beside it
        #[arg(long, default_value = "docs/benchmarks.md")]
        page: PathBuf,
    },
    /// Runs the floor: receives, writes, syncs, pushes, and nothing else
    Floor(floor::FloorOptions),
    /// Runs the other end of a bare loopback call
    Echo {
        /// Where to serve
        #[arg(long)]
        listen: SocketAddr,
    },
}

const SHORT_PUTS: u64 = 200;

#[derive(Args, Debug)]
struct RunOptions {
    /// What to measure
    scenarios: Vec<Scenario>,
    /// Rounds; in each, every side runs once
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long producers put in one measurement
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// How long each side is warmed up before a measurement, in milliseconds
    #[arg(long, default_value_t = 1000)]
    warm_up_ms: u64,
    /// How long `idle-1000` watches, in seconds
    #[arg(long, default_value_t = 20)]
    idle_seconds: u64,
    /// GiB that `restart`, `catchup`, `backlog` and the last step of `growth` store
    #[arg(long, default_value_t = 2.0)]
    store_gib: f64,
    /// Ports of the receiver, each an endpoint of HQueue's subscriber; one where there are many subscribers
    #[arg(long, default_value_t = 4)]
    endpoints: usize,
    /// Queues over which the throughput scenarios spread, each with 8 partitions
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    queues: u16,
    /// Of how many partitions each subscription of `idle-1000` is
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    idle_partitions: u16,
    /// Where the data of all sides goes: on the disk that is measured. A new folder is made in it and removed at the end
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The `hqueue` binary; default: beside this program
    #[arg(long)]
    hqueue: Option<PathBuf>,
    /// Another build of `hqueue`, which takes part in the rounds of throughput and latency
    #[arg(long)]
    other: Option<PathBuf>,
    /// Peers that take part, with commas between them
    #[arg(long, value_delimiter = ',')]
    peers: Vec<Peer>,
    /// Where `bench/peers/install` has installed them
    #[arg(long, default_value = "target/bench-peers")]
    installed: PathBuf,
    /// HQueue's own client library takes part too
    #[arg(long)]
    sdk: bool,
    /// The folder of an HBase that `scripts/hbase start` has started, for `hbase`
    #[arg(long)]
    hbase: Option<PathBuf>,
    /// So many puts in each measurement, whatever time they take
    #[arg(long)]
    puts: Option<u64>,
    /// A look whether all works: one round, 200 puts, and without names `syncs`, `tput-1k`, `put-lat` and `e2e-fixed`. Its figures mean nothing
    #[arg(long)]
    short: bool,
    /// Writes everything as JSON to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        // What is dropped here ends the processes that were started.
        Command::Run(options) => tokio::select! {
            done = run(options) => done,
            signal = interrupted() => Err(signal),
        },
        Command::Report { json, page } => report(&json, &page),
        Command::Floor(options) => floor::run(options).await,
        Command::Echo { listen } => echo::run(listen).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure @ Failure::Usage(_)) => fail(&failure, 2),
        Err(failure) => fail(&failure, 1),
    }
}

/// Waits until somebody wants this program to end.
async fn interrupted() -> Failure {
    let ended = async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    };
    match ended.await.doing(|| "waiting for signals".to_owned()) {
        Ok(()) => Failure::Usage("interrupted".to_owned()),
        Err(failure) => failure,
    }
}

fn fail(failure: &Failure, code: u8) -> ExitCode {
    eprintln!("{failure}");
    ExitCode::from(code)
}

async fn run(options: RunOptions) -> Outcome<()> {
    let bench_program = std::env::current_exe().doing(|| "looking for this program".to_owned())?;
    let hqueue = options.hqueue.unwrap_or_else(|| bench_program.with_file_name("hqueue"));
    let absolute = |path: PathBuf| {
        path.canonicalize().map_err(|error| Failure::Usage(format!("{}: {error}: build it, or say where it is", path.display())))
    };
    let (hqueue, other) = (absolute(hqueue)?, options.other.map(absolute).transpose()?);
    let dir = options.dir.canonicalize().doing(|| format!("looking for {}", options.dir.display()))?;
    let data = tempfile::Builder::new().prefix("hqueue-bench-").tempdir_in(&dir);
    let data = data.doing(|| format!("making a folder in {}", dir.display()))?;
    let installed = std::path::absolute(&options.installed).doing(|| format!("looking for {}", options.installed.display()))?;
    let places = Places {
        hqueue,
        other,
        bench: bench_program,
        data: data.path().to_owned(),
        installed,
        peers: options.peers,
        sdk: options.sdk,
        hbase: options.hbase.as_deref().map(HBase::in_folder).transpose()?,
    };
    let bench = Bench {
        rounds: if options.short { 1 } else { options.rounds },
        time: Duration::from_secs(options.seconds),
        warm_up: Duration::from_millis(options.warm_up_ms),
        puts: options.puts.or(options.short.then_some(SHORT_PUTS)),
        endpoints: options.endpoints.max(1),
        queues: options.queues,
        idle_partitions: options.idle_partitions,
        store_bytes: (options.store_gib * f64::from(1 << 30)) as u64,
        idle: Duration::from_secs(options.idle_seconds),
        places,
    };
    let wanted = match options.scenarios.as_slice() {
        [] if options.short => vec![Scenario::Syncs, Scenario::Tput1k, Scenario::PutLat, Scenario::EndToEnd],
        [] => {
            let is_measured = |scenario: &&Scenario| **scenario != Scenario::HBase || bench.places.hbase.is_some();
            Scenario::value_variants().iter().filter(is_measured).copied().collect()
        }
        named => named.to_vec(),
    };
    let mut report = Report { machine: Machine::look(&bench.places), peers: Vec::new(), scenarios: Vec::new(), took: Vec::new() };
    for peer in &bench.places.peers {
        report.peers.push(peer.report(&bench.places)?);
    }
    for scenario in wanted {
        let began = Instant::now();
        report.scenarios.extend(scenarios::run(scenario, &bench).await?);
        report.took.push(Took { scenario: scenario.to_string(), minutes: began.elapsed().as_secs_f64() / 60.0 });
        if let Some(path) = &options.json {
            write_json(path, &report)?;
        }
    }
    println!("{}", print(&report));
    Ok(())
}

fn report(json: &[PathBuf], page: &Path) -> Outcome<()> {
    let mut reports: Vec<Report> = Vec::new();
    for path in json {
        for report in Report::read_all(path)? {
            let other = match reports.last_mut() {
                Some(last) => last.join(report),
                None => Some(report),
            };
            reports.extend(other);
        }
    }
    write_page(&reports, page)
}

/// After each scenario, so that a long run that is broken off leaves what it has.
fn write_json(path: &Path, report: &Report) -> Outcome<()> {
    let json = serde_json::to_vec_pretty(report).map_err(std::io::Error::from);
    json.and_then(|json| std::fs::write(path, json)).doing(|| format!("writing {}", path.display()))
}
