//! `docs/benchmarks.md`, made from reports.

use std::fmt::Write;
use std::path::Path;

use super::pictures;
use super::table::{columns, short};
use super::{Ratio, Report, ScenarioReport};
use crate::failure::{Doing, Outcome};

/// What is said whatever the figures are.
const PREFACE: &str = include_str!("preface.md");
/// Columns of scenarios with a flow; the others show all they have.
const FLOW: [&str; 11] = [
    "msgs/s",
    "MB/s",
    "put p50 us",
    "put p99 us",
    "age p50 us",
    "age p99 us",
    "age p99.9 us",
    "CPU us/msg",
    "driver us/msg",
    "written/byte",
    "RSS MiB",
];

/// Writing into a string cannot fail.
macro_rules! put {
    ($($arg:tt)*) => { let _ = writeln!($($arg)*); };
}

/// Writes the page, and its pictures and rounds into a folder beside it that is named as it is.
pub fn write(reports: &[Report], page: &Path) -> Outcome<()> {
    let folder = page.with_extension("");
    std::fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
    let rounds = folder.join("rounds.json");
    let json = serde_json::to_vec(reports).map_err(std::io::Error::from);
    json.and_then(|json| std::fs::write(&rounds, json)).doing(|| format!("writing {}", rounds.display()))?;
    let scenarios: Vec<_> = reports.iter().flat_map(|report| &report.scenarios).collect();
    let mut text = PREFACE.to_owned();
    for report in reports {
        machine(&mut text, report);
    }
    took(&mut text, reports);
    goals(&mut text, &scenarios);
    put!(text, "\n## Pictures\n");
    let beside = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for (name, title, picture) in pictures::all(&scenarios) {
        let path = folder.join(format!("{name}.svg"));
        std::fs::write(&path, picture).doing(|| format!("writing {}", path.display()))?;
        put!(text, "![{title}]({beside}/{name}.svg)\n");
    }
    let all = "Medians over the rounds; in brackets the least and the most. Every round, as JSON";
    put!(text, "## All figures\n\n{all}: [rounds.json]({beside}/rounds.json).\n");
    for scenario in scenarios {
        figures(&mut text, scenario);
    }
    knobs(&mut text, reports);
    std::fs::write(page, text).doing(|| format!("writing {}", page.display()))
}

fn machine(text: &mut String, report: &Report) {
    let machine = &report.machine;
    put!(
        text,
        "\nMeasured on {} cores of {}, {}, Linux {}, {}, with {}.\n",
        machine.cores,
        machine.processor,
        machine.memory,
        machine.kernel,
        machine.file_system,
        machine.hqueue
    );
    let peers: Vec<_> =
        report.peers.iter().map(|peer| format!("{} {} (client: {})", peer.name, peer.version, peer.client)).collect();
    if !peers.is_empty() {
        put!(text, "Beside it: {}.\n", peers.join("; "));
    }
}

/// How long each scenario took, where that was noted.
fn took(text: &mut String, reports: &[Report]) {
    let all: Vec<_> = reports.iter().flat_map(|report| &report.took).collect();
    if all.is_empty() {
        return;
    }
    let minutes: f64 = all.iter().map(|took| took.minutes).sum();
    let each: Vec<_> = all.iter().map(|took| format!("{} {:.1}", took.scenario, took.minutes)).collect();
    put!(text, "\nMinutes that it took, starts and warming up included: {}; together {minutes:.0}.\n", each.join(", "));
}

/// Every goal once: against the best peer where it is about peers.
fn goals(text: &mut String, scenarios: &[&ScenarioReport]) {
    put!(text, "\n## Goals\n\n| scenario | figure | goal | reached | spread | |\n|---|---|---|---|---|---|");
    for scenario in scenarios {
        for ratio in hardest(&scenario.ratios) {
            let value = |value: Option<f64>| value.map_or_else(|| "no figure".to_owned(), short);
            let met = match ratio.met {
                Some(true) => "met",
                Some(false) => "**missed**",
                None => "",
            };
            let spread = format!("{} to {}", value(ratio.least), value(ratio.most));
            put!(text, "| {} | {} | {} | {} | {spread} | {met} |", scenario.name, ratio.of, ratio.goal, value(ratio.median));
        }
    }
}

/// Of goals that differ only in the peer, the one that is furthest from being met: that of the best peer.
fn hardest(ratios: &[Ratio]) -> Vec<&Ratio> {
    let mut hardest: Vec<&Ratio> = Vec::new();
    for ratio in ratios.iter().filter(|ratio| !ratio.goal.is_empty()) {
        let same = |other: &&mut &Ratio| {
            let about = |ratio: &Ratio| (ratio.side.clone(), ratio.figure.clone(), ratio.goal.clone(), ratio.is_over_peer());
            ratio.is_over_peer() && about(other) == about(ratio)
        };
        match hardest.iter_mut().find(same) {
            Some(other) if ratio.is_harder_than(other) => *other = ratio,
            Some(_) => {}
            None => hardest.push(ratio),
        }
    }
    hardest
}

fn figures(text: &mut String, scenario: &ScenarioReport) {
    put!(text, "\n### {}\n\n`{}`, rounds: {}\n", scenario.name, scenario.settings, scenario.rounds.len());
    let all = columns(scenario);
    let names: Vec<_> = if all.contains(&"msgs/s") { FLOW.into_iter().filter(|name| all.contains(name)).collect() } else { all };
    put!(text, "| side | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    for side in scenario.sides() {
        let cells = names.iter().map(|name| match scenario.summary(side, name) {
            Some(all) if scenario.rounds.len() > 1 => {
                format!("{} ({} to {})", short(all.median), short(all.least), short(all.most))
            }
            Some(all) => short(all.median),
            None => String::new(),
        });
        put!(text, "| {side} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    if scenario.ratios.iter().any(|ratio| ratio.median.is_some()) {
        put!(text, "\nRatios inside rounds:\n");
    }
    for ratio in &scenario.ratios {
        if let (Some(median), Some(least), Some(most)) = (ratio.median, ratio.least, ratio.most) {
            put!(text, "- {}: {} ({} to {})", ratio.of, short(median), short(least), short(most));
        }
    }
    for failure in &scenario.failures {
        put!(text, "- {}", failure.lines().next().unwrap_or_default());
    }
}

fn knobs(text: &mut String, reports: &[Report]) {
    let mut told: Vec<&str> = Vec::new();
    for peer in reports.iter().flat_map(|report| &report.peers) {
        if told.contains(&peer.name.as_str()) {
            continue;
        }
        told.push(&peer.name);
        put!(text, "\n## What is set for {}\n\n| knob | value | why |\n|---|---|---|", peer.name);
        for [name, value, why] in &peer.knobs {
            put!(text, "| {name} | {value} | {why} |");
        }
    }
}
