//! The queue in a folder, against a plain file that is appended to and synced. Both in this process, one thread.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use hqueue_storage::file_queue::{FileQueue, FileQueueError, FileQueueOptions, SyncWhen};
use serde_json::json;

use super::Bench;
use super::rounds::Rounds;
use crate::driver::Latencies;
use crate::failure::{Doing, Failure, Outcome};
use crate::report::{Bound, Figures, Goal, ScenarioReport};

/// What is offered at once, and when it is synced.
struct Shape {
    name: &'static str,
    elements: usize,
    bytes: usize,
    /// Else at most 100 ms later.
    syncs_each: bool,
    /// The least that is wanted of the floor's rate.
    bound: Bound,
}

const LATER: SyncWhen = SyncWhen::Within(Duration::from_millis(100));

const SHAPES: [Shape; 4] = [
    Shape { name: "file-queue, 1 KiB", elements: 1, bytes: 1024, syncs_each: true, bound: Bound::AtLeast(0.9) },
    Shape { name: "file-queue, 100 x 1 KiB", elements: 100, bytes: 1024, syncs_each: true, bound: Bound::AtLeast(0.8) },
    Shape { name: "file-queue, 64 KiB", elements: 1, bytes: 64 << 10, syncs_each: true, bound: Bound::AtLeast(0.8) },
    Shape { name: "file-queue, 1 KiB, synced later", elements: 1, bytes: 1024, syncs_each: false, bound: Bound::None },
];

pub(super) fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    SHAPES.iter().map(|shape| measure(bench, shape)).collect()
}

fn measure(bench: &Bench, shape: &Shape) -> Outcome<ScenarioReport> {
    let goals = [
        Goal::over_floor("offers/s", shape.bound),
        Goal::over_floor("offer p50 us", Bound::None),
        Goal::over_floor("offer p99 us", Bound::None),
        Goal::alone("polls/s", Bound::None),
    ];
    let mut rounds = Rounds::of(shape.name);
    for _ in 0..bench.rounds {
        rounds.begin();
        rounds.add("floor", floor(bench, shape))?;
        rounds.add("hqueue", queue(bench, shape))?;
    }
    let settings = json!({
        "elements": shape.elements, "bytes": shape.bytes, "synced": if shape.syncs_each { "each" } else { "within 100 ms" },
        "seconds": bench.time.as_secs_f64(),
    });
    Ok(ScenarioReport::new(shape.name, settings, rounds.rounds, rounds.failures, &goals))
}

/// Repeats `offer` for the time of a measurement.
fn offers(bench: &Bench, shape: &Shape, mut offer: impl FnMut() -> Outcome<()>) -> Outcome<(Figures, u64)> {
    let mut times = Latencies::default();
    let began = Instant::now();
    while began.elapsed() < bench.time {
        let at = Instant::now();
        offer()?;
        times.note(u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    let seconds = began.elapsed().as_secs_f64();
    let count = (times.len() * shape.elements) as u64;
    let figures = Figures::default()
        .with("offers/s", count as f64 / seconds)
        .with("MB/s", (count * shape.bytes as u64) as f64 / 1e6 / seconds)
        .maybe("offer p50 us", times.percentile_us(50.0))
        .maybe("offer p99 us", times.percentile_us(99.0));
    Ok((figures, count))
}

/// The least that a durable queue does: bytes at the end of a file, and a sync.
fn floor(bench: &Bench, shape: &Shape) -> Outcome<Figures> {
    let path = bench.places.data.join("file-queue.floor");
    let figures = append(bench, shape, &path);
    let _ = std::fs::remove_file(&path);
    figures
}

fn append(bench: &Bench, shape: &Shape, path: &Path) -> Outcome<Figures> {
    let doing = || format!("appending to {}", path.display());
    let mut file = File::create(path).doing(doing)?;
    let bytes = vec![b'x'; shape.elements * shape.bytes];
    let mut synced = Instant::now();
    let mut append = || -> io::Result<()> {
        file.write_all(&bytes)?;
        if shape.syncs_each || synced.elapsed() > Duration::from_millis(100) {
            file.sync_data()?;
            synced = Instant::now();
        }
        Ok(())
    };
    Ok(offers(bench, shape, || append().doing(doing))?.0)
}

fn queue(bench: &Bench, shape: &Shape) -> Outcome<Figures> {
    let folder = bench.places.data.join("file-queue");
    let figures = offer_and_poll(bench, shape, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    figures
}

fn offer_and_poll(bench: &Bench, shape: &Shape, folder: &Path) -> Outcome<Figures> {
    let failed = |error: FileQueueError| Failure::Side(error.to_string());
    let offers_synced = if shape.syncs_each { SyncWhen::Each } else { LATER };
    let options = FileQueueOptions { offers: offers_synced, ..FileQueueOptions::default() };
    let mut queue = FileQueue::open_with(folder, options).map_err(failed)?;
    let elements = vec![vec![b'x'; shape.bytes]; shape.elements];
    let (figures, offered) = offers(bench, shape, || queue.offer_all(&elements).map_err(failed))?;
    let began = Instant::now();
    let mut polled = 0;
    while let Some(element) = queue.poll().map_err(failed)? {
        if element.len() != shape.bytes {
            return Err(Failure::Invalid(format!("element {polled} has {} bytes", element.len())));
        }
        polled += 1;
    }
    if polled != offered {
        return Err(Failure::Invalid(format!("{offered} elements were offered, {polled} polled")));
    }
    let figures = figures.with("polls/s", polled as f64 / began.elapsed().as_secs_f64());
    queue.close().map_err(failed)?;
    Ok(figures)
}
