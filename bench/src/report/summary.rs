//! Figures over rounds: the middle, and how far they spread.

use super::ScenarioReport;

/// Of one figure of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Summary {
    /// `None` without values.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Self { median: super::ratio::median(&values)?, least: *values.first()?, most: *values.last()? })
    }
}

impl ScenarioReport {
    /// Of all rounds.
    #[must_use]
    pub fn summary(&self, side: &str, figure: &str) -> Option<Summary> {
        Summary::of(self.rounds.iter().filter_map(|round| round.get(side, figure)).collect())
    }

    /// All sides, in the order of their first appearance.
    #[must_use]
    pub fn sides(&self) -> Vec<&str> {
        let mut sides = Vec::new();
        for (side, _) in self.rounds.iter().flat_map(|round| &round.sides) {
            if !sides.contains(&side.as_str()) {
                sides.push(side.as_str());
            }
        }
        sides
    }
}
