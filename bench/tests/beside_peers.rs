//! The short form of the whole: `bench/run --short` installs, starts and measures two peers beside HQueue and the floor. What is looked at
//! is whether it is honest (all messages counted, none lost or out of place, each class of durability what it says), not how fast anything is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use std::path::Path;
use std::process::Command;

use hqueue_bench::report::{Report, ScenarioReport};

/// Puts of each measurement in the short form.
const PUTS: f64 = 200.0;

fn short_run() -> Report {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let mut run = Command::new(repository.join("bench/run"));
    run.arg("--short").arg("--dir").arg(folder.path()).arg("--json").arg(&json);
    // As it would be built by the tests; what is slow is looked for elsewhere.
    run.env("HQUEUE_BENCH_PROFILE", std::env::var("HQUEUE_BENCH_PROFILE").unwrap_or_else(|_| "dev".to_owned()));
    assert!(run.status().unwrap().success());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["report.json"], "the data of all sides is removed");
    Report::read_all(&json).unwrap().remove(0)
}

/// All messages of all sides, each once.
fn is_complete(scenario: &ScenarioReport) {
    assert_eq!(scenario.sides(), ["floor", "hqueue", "hqueue-sdk", "nats", "redis"], "{}", scenario.name);
    if scenario.name.starts_with("syncs") {
        return;
    }
    let number = |name: &str| scenario.settings.get(name).and_then(serde_json::Value::as_f64);
    let producers = number("producers").or(number("clients")).unwrap();
    let messages = (PUTS / producers).ceil() * producers * number("messages_a_put").unwrap_or(1.0);
    for round in &scenario.rounds {
        for (side, figures) in &round.sides {
            assert_eq!(figures.get("messages"), Some(messages), "{side} in {}", scenario.name);
            assert_eq!(figures.get("repeated"), Some(0.0), "{side} in {}", scenario.name);
            let rate = figures.get("msgs/s").unwrap();
            assert!(rate > 0.0 && figures.get("age p99 us").unwrap() > 0.0, "{side} in {}", scenario.name);
        }
    }
}

/// With one put in flight, a sync each, or next to none.
fn keeps_its_class(scenario: &ScenarioReport) {
    let synced = if scenario.name.ends_with("async") { 0.0..=0.5 } else { 1.0..=10.0 };
    for side in scenario.sides() {
        let syncs = scenario.summary(side, "syncs/put").unwrap().median;
        assert!(synced.contains(&syncs), "{side} makes {syncs} syncs a put in {}", scenario.name);
    }
}

#[test]
fn the_short_form_is_honest() {
    let report = short_run();
    let peers: Vec<_> = report.peers.iter().map(|peer| (peer.name.as_str(), peer.knobs.is_empty())).collect();
    assert_eq!(peers, [("nats", false), ("redis", false)]);
    assert!(report.peers.iter().all(|peer| peer.version.starts_with(|sign: char| sign.is_ascii_digit())), "{:?}", report.peers);
    assert_eq!(report.scenarios.len(), 2 + 1 + 2 + 6);
    for scenario in &report.scenarios {
        assert!(scenario.failures.is_empty(), "{}: {:?}", scenario.name, scenario.failures);
        assert_eq!(scenario.rounds.len(), 1);
        is_complete(scenario);
    }
    report.scenarios.iter().filter(|scenario| scenario.name.starts_with("syncs")).for_each(keeps_its_class);
}
