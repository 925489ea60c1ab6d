//! What is known of a message and one subscription.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_storage::store::MissingReason;

use crate::subscription::{Event, Standing};

/// What is known of a message and one subscription, at one moment or nearly so.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) id: MessageId,
    /// `None`: it is stored.
    pub(super) gone: Option<MissingReason>,
    /// By its topic; `None`: it is not there to be asked.
    pub(super) wanted: Option<bool>,
    /// It was not, for a while.
    pub(super) was_unwanted: bool,
    pub(super) held: Option<Held>,
    /// Of the partition; `None`: there is none.
    pub(super) endpoint: Option<Arc<str>>,
    /// That does not answer at present.
    pub(super) endpoint_is_away: bool,
    pub(super) is_failing: bool,
    pub(super) window_is_full: bool,
    /// `None`: the subscription does not read the partition.
    pub(super) standing: Option<Standing>,
    /// Oldest first.
    pub(super) past: Vec<Past>,
    pub(super) letter: Option<Letter>,
    /// Why it cannot be told whether there is a letter.
    pub(super) letters_away: Option<String>,
    /// The oldest message that the subscription wants and has not finished.
    pub(super) first: Option<MessageId>,
    /// So many that it wants lie before.
    pub(super) ahead: u64,
    pub(super) last_error: Option<String>,
}

impl Facts {
    /// Of a message and a subscriber that has nothing to do with its partition.
    pub(super) const fn unread(id: MessageId) -> Self {
        Self {
            id,
            gone: None,
            wanted: None,
            was_unwanted: false,
            held: None,
            endpoint: None,
            endpoint_is_away: false,
            is_failing: false,
            window_is_full: false,
            standing: None,
            past: Vec::new(),
            letter: None,
            letters_away: None,
            first: None,
            ahead: 0,
            last_error: None,
        }
    }
}

/// Why a subscription makes no calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Its queue is.
    Disabled,
    Paused,
    /// What coordination has of it cannot be read.
    Broken,
    /// Other options are about to count.
    Changing,
}

/// What has happened.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) event: Event,
    /// A call in whose range the message lies carried it: its topic was wanted then.
    pub(super) carried: bool,
}

/// A dead letter that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) id: MessageId,
    pub(super) attempts: u32,
    pub(super) error: String,
}
