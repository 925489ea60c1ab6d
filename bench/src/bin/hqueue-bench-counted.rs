//! A standalone broker under a counting allocator. Each line on standard input is answered by a line with what was allocated since
//! the start, as JSON; the end of standard input ends the process.

use std::alloc::System;
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use hqueue_bench::setting::Durability;
use hqueue_bench::sides::Allocated;
use hqueue_broker::{Broker, Options};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Debug, Parser)]
struct Cli {
    #[arg(long)]
    data: PathBuf,
    #[arg(long)]
    listen: SocketAddr,
    /// When a put is acknowledged
    #[arg(long, default_value = "sync")]
    durability: Durability,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let options =
        Options { data: cli.data, listen: cli.listen, http: None, durability: cli.durability.into(), ..Options::default() };
    let broker = match Broker::start(options).await {
        Ok(broker) => broker,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let asked = tokio::task::spawn_blocking(answer_questions).await;
    broker.stop().await;
    match asked {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(_)) | Err(_) => ExitCode::FAILURE,
    }
}

fn answer_questions() -> io::Result<()> {
    for question in io::stdin().lock().lines() {
        question?;
        let stats = ALLOCATOR.stats();
        let allocated = Allocated {
            allocations: stats.allocations as u64,
            reallocations: stats.reallocations as u64,
            bytes: stats.bytes_allocated as u64,
        };
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &allocated)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}
