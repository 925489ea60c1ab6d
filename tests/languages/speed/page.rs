//! The rates in Markdown.

use std::fmt::{self, Write};

use super::counting::Rate;

/// One round.
pub(super) struct Measured {
    pub(super) own: Rate,
    pub(super) pushed: Rate,
}

impl Measured {
    fn ratio(&self) -> f64 {
        self.pushed.per_second / self.own.per_second
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { own, pushed } = self;
        write!(f, "its own client {:.0} messages/s, the broker {:.0}: {:.2}", own.per_second, pushed.per_second, self.ratio())
    }
}

pub(super) struct Row {
    pub(super) language: &'static str,
    pub(super) rounds: Vec<Measured>,
    /// Why there is no figure.
    pub(super) fault: Option<String>,
}

pub(super) fn print(rows: &[Row], rounds: usize) -> String {
    let mut page = format!(
        "Messages a second to a consumer, 1 KiB each, 100 a call: the median of {rounds} rounds and, in brackets, the range.\n\n\
         | language | a loop of its library's client | pushed by the broker | messages a call | share |\n|---|---|---|---|---|\n"
    );
    for Row { language, rounds, fault } in rows {
        if let Some(fault) = fault {
            let _ = writeln!(page, "| {language} | no figure: {fault} | | | |");
            continue;
        }
        let of = |figure: fn(&Measured) -> f64, digits: usize| {
            let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
            figures.sort_unstable_by(f64::total_cmp);
            let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
            format!("{:.digits$} ({:.digits$} to {:.digits$})", at(figures.len() / 2), at(0), at(figures.len().saturating_sub(1)))
        };
        let (own, pushed) = (of(|m| m.own.per_second, 0), of(|m| m.pushed.per_second, 0));
        let per_call = of(|m| m.pushed.per_call, 1);
        let _ = writeln!(page, "| {language} | {own} | {pushed} | {per_call} | {} |", of(Measured::ratio, 2));
    }
    page
}
