//! Named numbers of one side in one round.

use serde::{Deserialize, Serialize};

/// In the order in which they were added; the name holds the unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(Vec<(String, f64)>);

impl Figures {
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.0.push((name.to_owned(), value));
        self
    }

    /// Adds it if there is one.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}
