//! What every side is set to.

use serde::Serialize;

/// When a put is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Once it is synced.
    Sync,
    /// Once it is written; it is synced every 100 ms.
    Async,
}

impl From<Durability> for hqueue_broker::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Sync => Self::Sync,
            Durability::Async => Self::Async,
        }
    }
}

impl Durability {
    /// As it stands on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
        }
    }
}
