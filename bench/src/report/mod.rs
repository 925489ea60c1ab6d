//! What comes out: figures of each side, ratios inside each round, a table and JSON.

mod figures;
mod machine;
mod markdown;
mod pictures;
mod plot;
mod ratio;
mod summary;
mod table;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::figures::Figures;
pub use self::machine::Machine;
pub use self::markdown::write as write_page;
pub use self::ratio::{Bound, Goal, Ratio};
pub use self::summary::Summary;
pub use self::table::print;
use crate::failure::{Doing, Outcome};

/// Everything of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub machine: Machine,
    /// Empty in reports of HQueue alone.
    #[serde(default)]
    pub peers: Vec<PeerReport>,
    pub scenarios: Vec<ScenarioReport>,
    /// In reports of before it was noted: empty.
    #[serde(default)]
    pub took: Vec<Took>,
}

/// How long a scenario took, all its rounds, with starts and warming up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Took {
    /// As on the command line.
    pub scenario: String,
    pub minutes: f64,
}

/// What took part beside HQueue, and how it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerReport {
    pub name: String,
    pub version: String,
    pub client: String,
    /// Name, value, reason.
    pub knobs: Vec<[String; 3]>,
}

impl Report {
    /// Reads what was written as JSON: one report, or a list of them.
    pub fn read_all(path: &Path) -> Outcome<Vec<Self>> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(Box<Report>),
            Several(Vec<Report>),
        }
        let text = std::fs::read(path).doing(|| format!("reading {}", path.display()))?;
        let written =
            serde_json::from_slice(&text).map_err(std::io::Error::from).doing(|| format!("reading {}", path.display()))?;
        Ok(match written {
            Written::One(report) => vec![*report],
            Written::Several(reports) => reports,
        })
    }

    /// Adds the scenarios of another run, if it was made on this machine, beside the same peers or beside none.
    pub fn join(&mut self, other: Self) -> Option<Self> {
        if self.machine != other.machine || !(other.peers.is_empty() || self.peers == other.peers) {
            return Some(other);
        }
        self.scenarios.extend(other.scenarios);
        self.took.extend(other.took);
        None
    }
}

/// One scenario, all its rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScenarioReport {
    pub name: String,
    pub settings: serde_json::Value,
    pub rounds: Vec<Round>,
    pub ratios: Vec<Ratio>,
    /// Rounds without a figure, and why.
    pub failures: Vec<String>,
}

/// What each side did in one round, in the order in which they ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    pub sides: Vec<(String, Figures)>,
}

impl Round {
    pub fn add(&mut self, side: &str, figures: Figures) {
        self.sides.push((side.to_owned(), figures));
    }

    /// One figure of one side.
    #[must_use]
    pub fn get(&self, side: &str, figure: &str) -> Option<f64> {
        self.sides.iter().find(|(name, _)| name == side).and_then(|(_, figures)| figures.get(figure))
    }
}

impl ScenarioReport {
    /// Divides inside each round.
    #[must_use]
    pub fn new(name: &str, settings: serde_json::Value, rounds: Vec<Round>, failures: Vec<String>, goals: &[Goal]) -> Self {
        let ratios = goals.iter().map(|goal| Ratio::of(goal, &rounds)).filter(|ratio| ratio.is_asked()).collect();
        Self { name: name.to_owned(), settings, rounds, ratios, failures }
    }
}
