//! Which pictures are drawn of what.

use super::ScenarioReport;
use super::plot::{Plot, Series};

/// Name of the file, title, and the picture; those for which there are figures.
pub(super) fn all(scenarios: &[&ScenarioReport]) -> Vec<(String, String, String)> {
    let mut pictures = Vec::new();
    for class in ["sync", "async"] {
        pictures.extend(throughput(scenarios, class));
        for rate in ["1000", "5000", "20000"] {
            pictures.extend(latency(scenarios, class, rate));
        }
    }
    for axis in ["subscribers", "partitions", "backlog"] {
        for (figure, unit) in [("CPU us/msg", "cpu"), ("RSS MiB", "memory"), ("age p99 us", "latency")] {
            pictures.extend(growth(scenarios, axis, figure, unit));
        }
    }
    pictures
}

/// All sides that have a figure in one of the scenarios.
fn sides<'a>(scenarios: &[&'a ScenarioReport]) -> Vec<&'a str> {
    let mut sides = Vec::new();
    for side in scenarios.iter().flat_map(|scenario| scenario.sides()) {
        if !sides.contains(&side) {
            sides.push(side);
        }
    }
    sides
}

/// A series a side, with a value for each scenario at which it has one.
fn series(scenarios: &[&ScenarioReport], at: &[f64], figure: &str) -> Vec<Series> {
    let points = |side: &str| {
        let values = scenarios.iter().zip(at).filter_map(|(scenario, x)| Some((*x, scenario.summary(side, figure)?.median)));
        values.collect::<Vec<_>>()
    };
    let all = sides(scenarios).into_iter().map(|side| Series { name: side.to_owned(), points: points(side) });
    all.filter(|series| !series.points.is_empty()).collect()
}

fn throughput(scenarios: &[&ScenarioReport], class: &str) -> Option<(String, String, String)> {
    let sizes = ["tput-100b", "tput-1k", "tput-64k"];
    let named = |size: &&str| scenarios.iter().find(|scenario| scenario.name == format!("{size}, {class}")).copied();
    let found: Vec<_> = sizes.iter().filter_map(|size| Some((*size, named(size)?))).collect();
    let at: Vec<_> = (0..found.len()).map(|number| number as f64).collect();
    let own: Vec<_> = found.iter().map(|(_, scenario)| *scenario).collect();
    let title = format!("Throughput end to end, {}", of_class(class));
    let plot = Plot {
        title: title.clone(),
        x: "size of a message".to_owned(),
        y: "messages a second".to_owned(),
        marks: at.iter().copied().zip(found.iter().map(|(size, _)| size.trim_start_matches("tput-").to_owned())).collect(),
        log_x: false,
        series: series(&own, &at, "msgs/s"),
    };
    (!plot.series.is_empty()).then(|| (format!("throughput-{class}"), title, plot.bars()))
}

fn latency(scenarios: &[&ScenarioReport], class: &str, rate: &str) -> Option<(String, String, String)> {
    let scenario = scenarios.iter().find(|scenario| scenario.name == format!("e2e-fixed, {rate}/s, {class}"))?;
    let figures = [("age p50 us", "p50"), ("age p99 us", "p99"), ("age p99.9 us", "p99.9")];
    let points = |side: &str| {
        let values =
            (0..).zip(figures).filter_map(|(x, (figure, _))| Some((f64::from(x), scenario.summary(side, figure)?.median)));
        values.collect::<Vec<_>>()
    };
    let title = format!("From the intended send to the arrival at {rate} messages a second, {}", of_class(class));
    let plot = Plot {
        title: title.clone(),
        x: "percentile".to_owned(),
        y: "microseconds".to_owned(),
        marks: (0..).map(f64::from).zip(figures.map(|(_, mark)| mark.to_owned())).collect(),
        log_x: false,
        series: scenario.sides().iter().map(|side| Series { name: (*side).to_owned(), points: points(side) }).collect(),
    };
    Some((format!("latency-{rate}-{class}"), title, plot.lines()))
}

fn growth(scenarios: &[&ScenarioReport], axis: &str, figure: &str, unit: &str) -> Option<(String, String, String)> {
    let step = |scenario: &ScenarioReport| {
        let middle = scenario.name.strip_prefix("growth, ")?.strip_suffix(axis)?.trim().to_owned();
        middle.parse::<f64>().ok().map(|step| (step, middle))
    };
    let found: Vec<_> = scenarios.iter().filter_map(|scenario| Some((step(scenario)?, *scenario))).collect();
    let at: Vec<_> = found.iter().map(|((step, _), _)| *step).collect();
    let own: Vec<_> = found.iter().map(|(_, scenario)| *scenario).collect();
    let x = if axis == "backlog" { "stored, in tenths of the whole".to_owned() } else { axis.to_owned() };
    let title = format!("{figure} against {x}");
    let marks = found.iter().map(|(mark, _)| mark.clone()).collect();
    let series = series(&own, &at, figure);
    let plot = Plot { title: title.clone(), x, y: figure.to_owned(), marks, log_x: axis != "backlog", series };
    (!plot.series.is_empty()).then(|| (format!("growth-{axis}-{unit}"), title, plot.lines()))
}

fn of_class(class: &str) -> &'static str {
    if class == "sync" { "synced before the acknowledgement" } else { "acknowledged when written" }
}
