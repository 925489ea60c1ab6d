//! How soon something that failed is tried again, and how loudly that is said.

use std::fmt::Display;
use std::time::Duration;

use crate::subscription::backoff;

const MIN: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(5);

/// Backs off while tries fail; says an error once, again when it changes, and when it is over.
#[derive(Debug)]
pub struct Pace {
    what: &'static str,
    failures: u32,
    said: Option<String>,
}

impl Pace {
    #[must_use]
    pub const fn new(what: &'static str) -> Self {
        Self { what, failures: 0, said: None }
    }

    /// When to try again after this outcome; `None`: it succeeded.
    pub fn after<E: Display>(&mut self, outcome: &Result<(), E>) -> Option<Duration> {
        match outcome {
            Ok(()) => {
                if self.said.take().is_some() {
                    tracing::info!("{}: in order again", self.what);
                }
                self.failures = 0;
                None
            }
            Err(error) => {
                let text = error.to_string();
                if self.said.as_ref() != Some(&text) {
                    tracing::warn!("{}: {text}; tried again", self.what);
                    self.said = Some(text);
                }
                self.failures = self.failures.saturating_add(1);
                Some(backoff::delay(MIN, MAX, self.failures, fastrand::f64()))
            }
        }
    }
}
