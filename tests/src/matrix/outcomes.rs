//! What stands in the file.

use std::collections::{BTreeMap, BTreeSet};

/// What a case came to, of all servers and clients of a library that speak one dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) passed: usize,
    /// Kinds of servers that failed, or did not end.
    pub(super) failed: Vec<String>,
    pub(super) unended: Vec<String>,
}

/// Language, transport, protocol.
type Dialect = (String, String, String);
/// Whether a case of a kind of server or client in a dialect has passed; `None`: it only began.
type Cells = BTreeMap<(Dialect, String, String), Option<bool>>;

/// The lines of a file.
#[derive(Debug, Default)]
pub struct Outcomes {
    cells: Cells,
    absent: BTreeSet<Dialect>,
}

impl Outcomes {
    /// # Panics
    /// If a line is none of the matrix.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut outcomes = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [language, kind, transport, protocol, case, outcome] = words[..] else {
                panic!("{line:?} is no line of the matrix")
            };
            let dialect = (language.to_owned(), transport.to_owned(), protocol.to_owned());
            let ended = match outcome {
                "absent" => {
                    outcomes.absent.insert(dialect);
                    continue;
                }
                "began" => None,
                "passed" => Some(true),
                "failed" => Some(false),
                _ => panic!("{line:?} is no line of the matrix"),
            };
            let cell = outcomes.cells.entry((dialect, case.to_owned(), kind.to_owned())).or_default();
            // What has failed once stays so, however often it is tried.
            if *cell != Some(false) {
                *cell = ended;
            }
        }
        outcomes
    }

    pub(super) fn is_absent(&self, language: &str, transport: &str, protocol: &str) -> bool {
        self.absent.contains(&(language.to_owned(), transport.to_owned(), protocol.to_owned()))
    }

    /// `None`: it was not run.
    pub(super) fn of(&self, language: &str, transport: &str, protocol: &str, case: &str) -> Option<Sum> {
        let dialect = (language.to_owned(), transport.to_owned(), protocol.to_owned());
        let mut sum = Sum::default();
        for ((_, _, kind), outcome) in self.cells.iter().filter(|((of, what, _), _)| *of == dialect && what == case) {
            match outcome {
                Some(true) => sum.passed += 1,
                Some(false) => sum.failed.push(kind.clone()),
                None => sum.unended.push(kind.clone()),
            }
        }
        (sum != Sum::default()).then_some(sum)
    }
}
