//! What comes out: figures of each side, ratios inside each round, a table and JSON.

mod figures;
mod machine;
mod ratio;
mod table;

use serde::Serialize;

pub use self::figures::Figures;
pub use self::machine::Machine;
pub use self::ratio::{Bound, Goal, Ratio};
pub use self::table::print;

/// Everything of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub scenarios: Vec<ScenarioReport>,
}

/// One scenario, all its rounds.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    pub name: String,
    pub settings: serde_json::Value,
    pub rounds: Vec<Round>,
    pub ratios: Vec<Ratio>,
    /// Rounds without a figure, and why.
    pub failures: Vec<String>,
}

/// What each side did in one round, in the order in which they ran.
#[derive(Clone, Debug, Default, Serialize)]
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
