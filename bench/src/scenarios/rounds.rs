//! Interleaved rounds.

use crate::failure::{Failure, Outcome};
use crate::report::{Figures, Round};

/// All rounds of a scenario, and why some measurements have no figure.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    pub(super) rounds: Vec<Round>,
    pub(super) failures: Vec<String>,
}

impl Rounds {
    /// Begins the next round. Ratios compare what is in one round only.
    pub(super) fn begin(&mut self) {
        self.rounds.push(Round::default());
    }

    /// Adds what one side has done. What ends a measurement without a figure is kept; what makes all of them senseless is returned.
    pub(super) fn add(&mut self, side: &str, figures: Outcome<Figures>) -> Outcome<()> {
        match figures {
            Ok(figures) => {
                if let Some(round) = self.rounds.last_mut() {
                    round.add(side, figures);
                }
                Ok(())
            }
            Err(failure @ Failure::Usage(_)) => Err(failure),
            Err(failure) => {
                let failure = format!("round {}, {side}: {failure}", self.rounds.len());
                eprintln!("{failure}");
                self.failures.push(failure);
                Ok(())
            }
        }
    }
}
