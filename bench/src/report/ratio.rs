//! Ratios inside rounds. On a noisy machine nothing else can be compared.

use serde::{Deserialize, Serialize};

use super::Round;

/// What is wanted of a figure of one side, divided by a figure of another, or of a figure alone.
#[derive(Clone, Debug)]
pub struct Goal {
    pub side: &'static str,
    pub figure: &'static str,
    /// `None`: the figure itself is what counts.
    pub over: Option<(&'static str, &'static str)>,
    pub bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// Only to be seen.
    None,
}

/// A goal and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ratio {
    pub of: String,
    pub side: String,
    pub figure: String,
    /// What it is divided by.
    pub over: Option<String>,
    pub goal: String,
    /// One a round.
    pub values: Vec<f64>,
    pub median: Option<f64>,
    pub least: Option<f64>,
    pub most: Option<f64>,
    /// By the median; `None`: nothing is asked, or there is no figure.
    pub met: Option<bool>,
}

impl Goal {
    /// HQueue's figure over the floor's.
    #[must_use]
    pub const fn over_floor(figure: &'static str, bound: Bound) -> Self {
        Self { side: "hqueue", figure, over: Some(("floor", figure)), bound }
    }

    /// HQueue's figure over that of another build.
    #[must_use]
    pub const fn over_other(figure: &'static str) -> Self {
        Self { side: "hqueue", figure, over: Some(("other", figure)), bound: Bound::None }
    }

    /// HQueue's figure alone.
    #[must_use]
    pub const fn alone(figure: &'static str, bound: Bound) -> Self {
        Self { side: "hqueue", figure, over: None, bound }
    }

    fn of(&self) -> String {
        match self.over {
            None => format!("{} of {}", self.figure, self.side),
            Some((side, figure)) if figure == self.figure => format!("{figure}, {} over {side}", self.side),
            Some((side, figure)) => format!("{} of {} over {figure} of {side}", self.figure, self.side),
        }
    }

    fn value(&self, round: &Round) -> Option<f64> {
        let value = round.get(self.side, self.figure)?;
        match self.over {
            None => Some(value),
            Some((side, figure)) => round.get(side, figure).filter(|over| *over > 0.0).map(|over| value / over),
        }
    }
}

impl Ratio {
    /// Is there a goal, or a value?
    #[must_use]
    pub fn is_asked(&self) -> bool {
        !self.goal.is_empty() || !self.values.is_empty()
    }

    /// Is it a peer's figure that it is divided by?
    #[must_use]
    pub fn is_over_peer(&self) -> bool {
        self.over.as_deref().is_some_and(|over| !["floor", "other", "loopback"].contains(&over))
    }

    /// Of two with the same goal: is this one further from being met?
    #[must_use]
    pub fn is_harder_than(&self, other: &Self) -> bool {
        match (self.median, other.median) {
            (Some(own), Some(theirs)) => (own < theirs) == self.goal.starts_with("at least"),
            (own, theirs) => own.is_some() && theirs.is_none(),
        }
    }

    #[must_use]
    pub fn of(goal: &Goal, rounds: &[Round]) -> Self {
        let values: Vec<_> = rounds.iter().filter_map(|round| goal.value(round)).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let median = median(&sorted);
        let (text, met) = match goal.bound {
            Bound::AtLeast(bound) => (format!("at least {bound}"), median.map(|median| median >= bound)),
            Bound::AtMost(bound) => (format!("at most {bound}"), median.map(|median| median <= bound)),
            Bound::None => (String::new(), None),
        };
        Self {
            of: goal.of(),
            side: goal.side.to_owned(),
            figure: goal.figure.to_owned(),
            over: goal.over.map(|(side, _)| side.to_owned()),
            goal: text,
            values,
            median,
            least: sorted.first().copied(),
            most: sorted.last().copied(),
            met,
        }
    }
}

pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| f64::midpoint(*lower, upper))
}

#[cfg(test)]
mod tests {
    use super::super::Figures;
    use super::*;

    fn round(floor: f64, hqueue: f64) -> Round {
        let mut round = Round::default();
        round.add("floor", Figures::default().with("msgs/s", floor));
        round.add("hqueue", Figures::default().with("msgs/s", hqueue));
        round
    }

    #[test]
    fn the_median_of_ratios_decides() {
        let rounds = [round(10.0, 9.0), round(100.0, 60.0), round(50.0, 10.0)];
        let ratio = Ratio::of(&Goal::over_floor("msgs/s", Bound::AtLeast(0.5)), &rounds);
        assert_eq!(ratio.median, Some(0.6));
        assert_eq!((ratio.least, ratio.most, ratio.met), (Some(0.2), Some(0.9), Some(true)));
        let ratio = Ratio::of(&Goal::over_floor("p50 us", Bound::AtMost(0.5)), &rounds);
        assert_eq!((ratio.median, ratio.met), (None, None));
    }

    #[test]
    fn of_two_rounds_the_middle() {
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[]), None);
    }
}
