//! Where a client may connect to: a list that was given, or one that changes while the client lives.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The addresses of a client.
#[derive(Clone, Debug)]
pub(super) enum Addresses {
    Fixed(Vec<String>),
    Changing(ChangingAddresses),
}

/// Addresses that come and go.
#[derive(Clone, Debug)]
pub struct ChangingAddresses {
    /// `host:port` of each broker that is there now; tried in this order, but for the one that worked last, which is the first.
    pub list: watch::Receiver<Vec<String>>,
    /// Where the list comes from, for people: an error names it when the list is empty.
    pub source: String,
    /// What keeps the list up to date: it is held as long as there is a client.
    pub follower: Arc<dyn Any + Send + Sync>,
}

impl Addresses {
    /// May a connection to this address be used still? One to a broker that has gone from the list is left, unless nobody else is there.
    pub(super) fn has(&self, address: &str) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::Changing(changing) => {
                let list = changing.list.borrow();
                list.is_empty() || list.iter().any(|a| a == address)
            }
        }
    }

    /// The addresses to try; waits until the deadline for one. None: there is still none.
    pub(super) async fn to_try(&self, deadline: Instant) -> Vec<String> {
        match self {
            Self::Fixed(list) => list.clone(),
            Self::Changing(changing) => {
                let mut list = changing.list.clone();
                // An error: nobody will ever add one.
                match timeout_at(deadline, list.wait_for(|list| !list.is_empty())).await {
                    Ok(Ok(list)) => list.clone(),
                    _ => Vec::new(),
                }
            }
        }
    }

    /// How many there are now.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Fixed(list) => list.len(),
            Self::Changing(changing) => changing.list.borrow().len(),
        }
    }

    /// All of them, for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Fixed(list) => list.join(", "),
            Self::Changing(changing) => {
                let list = changing.list.borrow();
                if list.is_empty() { changing.source.clone() } else { list.join(", ") }
            }
        }
    }
}
