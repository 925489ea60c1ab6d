//! Interleaved rounds.

use crate::failure::{Failure, Outcome};
use crate::report::{Figures, Round};
use crate::sides::Side;

/// All rounds of a scenario, and why some measurements have no figure.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// What is said of on the way.
    name: String,
    pub(super) rounds: Vec<Round>,
    pub(super) failures: Vec<String>,
}

impl Rounds {
    pub(super) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Begins the next round. Ratios compare what is in one round only.
    pub(super) fn begin(&mut self) {
        self.rounds.push(Round::default());
    }

    /// Begins the next round, and says in which order its sides take turns: every second time backwards, so that nobody always comes
    /// behind the same one.
    pub(super) fn begin_with(&mut self, mut sides: Vec<Side>) -> Vec<Side> {
        self.begin();
        if self.rounds.len().is_multiple_of(2) {
            sides.reverse();
        }
        sides
    }

    /// Adds what one side has done. What ends a measurement without a figure is kept; what makes all of them senseless is returned.
    pub(super) fn add(&mut self, side: &str, figures: Outcome<Figures>) -> Outcome<()> {
        match figures {
            Ok(figures) => {
                let first: Vec<_> = figures.iter().take(3).map(|(name, value)| format!("{name} {value:.1}")).collect();
                eprintln!("{} round {}, {side}: {}", self.name, self.rounds.len(), first.join(", "));
                if let Some(round) = self.rounds.last_mut() {
                    round.add(side, figures);
                }
                Ok(())
            }
            Err(failure @ Failure::Usage(_)) => Err(failure),
            Err(failure) => {
                let failure = format!("round {}, {side}: {failure}", self.rounds.len());
                eprintln!("{} {failure}", self.name);
                self.failures.push(failure);
                Ok(())
            }
        }
    }
}
