//! The matrix of the languages: what each check of `tests/languages` came to, in each dialect of each library.
//!
//! The checks append to the file that `HQUEUE_MATRIX` names, a line when a case begins and one when it ends:
//!
//! ```text
//! java <TAB> pool <TAB> framed <TAB> compact <TAB> idle <TAB> began
//! java <TAB> pool <TAB> framed <TAB> compact <TAB> idle <TAB> passed
//! perl <TAB> - <TAB> framed <TAB> compact <TAB> - <TAB> absent          its library does not speak this
//! ```
//!
//! [`print`] makes tables of them, in which nothing stands but what is in the file: a case without a line was not run, one that only began
//! did not end.

mod outcomes;
mod table;

use std::fs::File;
use std::io::Write;

pub use outcomes::Outcomes;
pub use table::print;

/// The variable that names the file.
const FILE: &str = "HQUEUE_MATRIX";

/// A server or a client of a library, and how it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub language: &'static str,
    /// `threaded`, `pool`, `client`
    pub kind: &'static str,
    pub transport: &'static str,
    pub protocol: &'static str,
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    Complete,
    Large,
    Throws,
    Results,
    Killed,
    Idle,
    Many,
    Replaced,
    Strangers,
    Puts,
    Scanners,
    Locations,
    Refusals,
    Example,
    ByHand,
}

impl Case {
    /// Those of consumers.
    pub const CONSUMER: [Self; 9] = [
        Self::Complete,
        Self::Large,
        Self::Throws,
        Self::Results,
        Self::Killed,
        Self::Idle,
        Self::Many,
        Self::Replaced,
        Self::Strangers,
    ];
    /// Those of clients of the gateway.
    pub const PRODUCER: [Self; 4] = [Self::Puts, Self::Scanners, Self::Locations, Self::Refusals];
    /// Of the examples in `clients`.
    pub const EXAMPLE: [Self; 2] = [Self::Example, Self::ByHand];

    /// As it stands in the file, and above a column.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete and in order",
            Self::Large => "3 MiB",
            Self::Throws => "handler throws",
            Self::Results => "each result",
            Self::Killed => "killed and back",
            Self::Idle => "idle, then a message",
            Self::Many => "10,000 messages",
            Self::Replaced => "replaced by another language",
            Self::Strangers => "strangers at its port",
            Self::Puts => "puts in four forms",
            Self::Scanners => "three scanners",
            Self::Locations => "locations",
            Self::Refusals => "refusals",
            Self::Example => "consumer and producer, by `run`",
            Self::ByHand => "consumer, by hand in a copy of the folder",
        }
    }
}

/// A case that goes on. It has failed unless it is said to have [passed](Self::passed).
#[derive(Debug)]
pub struct Cell {
    place: Place,
    case: Case,
    has_passed: bool,
}

impl Cell {
    /// # Panics
    /// If `HQUEUE_MATRIX` names a file that cannot be written.
    #[must_use]
    pub fn begin(place: Place, case: Case) -> Self {
        append(place, case.name(), "began");
        Self { place, case, has_passed: false }
    }

    /// # Panics
    /// If `HQUEUE_MATRIX` names a file that cannot be written.
    pub fn passed(mut self) {
        self.has_passed = true;
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        append(self.place, self.case.name(), if self.has_passed { "passed" } else { "failed" });
    }
}

/// The library does not speak so.
///
/// # Panics
/// If `HQUEUE_MATRIX` names a file that cannot be written.
pub fn absent(place: Place) {
    append(place, "-", "absent");
}

/// A line is one write at the end of the file, so that those of several threads do not mix.
fn append(place: Place, case: &str, outcome: &str) {
    let Some(file) = std::env::var_os(FILE) else { return };
    let Place { language, kind, transport, protocol } = place;
    let line = format!("{}\n", [language, kind, transport, protocol, case, outcome].join("\t"));
    let written = File::options().create(true).append(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
