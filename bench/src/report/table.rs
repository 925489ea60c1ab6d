//! The report for people.

use std::fmt::Write;

use super::{Report, ScenarioReport};

/// All of it as text.
#[must_use]
pub fn print(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "{} cores of {}, {}, Linux {}, {}; {}\n",
        machine.cores, machine.processor, machine.memory, machine.kernel, machine.file_system, machine.hqueue
    );
    for scenario in &report.scenarios {
        print_scenario(&mut text, scenario);
    }
    text
}

/// Writing into a string cannot fail.
macro_rules! put {
    ($($arg:tt)*) => { let _ = write!($($arg)*); };
}

fn print_scenario(text: &mut String, scenario: &ScenarioReport) {
    put!(text, "\n{}  {}\n", scenario.name, scenario.settings);
    let names = columns(scenario);
    put!(text, "  {:<6}{:<8}", "round", "side");
    for name in &names {
        put!(text, "{name:>17}");
    }
    text.push('\n');
    for (number, round) in (1..).zip(&scenario.rounds) {
        for (side, figures) in &round.sides {
            put!(text, "  {number:<6}{side:<8}");
            for name in &names {
                put!(text, "{:>17}", figures.get(name).map(short).unwrap_or_default());
            }
            text.push('\n');
        }
    }
    for ratio in &scenario.ratios {
        let value = |value: Option<f64>| value.map(short).unwrap_or_else(|| "no figure".to_owned());
        put!(text, "  {}: {}", ratio.of, value(ratio.median));
        put!(text, " ({} to {})", value(ratio.least), value(ratio.most));
        if let Some(met) = ratio.met {
            put!(text, ", wanted {}: {}", ratio.goal, if met { "met" } else { "MISSED" });
        }
        text.push('\n');
    }
    for failure in &scenario.failures {
        put!(text, "  {failure}\n");
    }
}

/// The names of all figures, in the order of their first appearance.
pub(super) fn columns(scenario: &ScenarioReport) -> Vec<&str> {
    let mut names = Vec::new();
    for (_, figures) in scenario.rounds.iter().flat_map(|round| &round.sides) {
        for name in figures.names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Three digits or more.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
