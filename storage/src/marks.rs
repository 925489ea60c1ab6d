//! What keeps brokers that share a store from giving an id twice.
//!
//! A call to a store on other machines that timed out may be carried out at any later time, also after its broker has lost the
//! partition. If that broker and its successor could give the same id, the late write would replace a message that was acknowledged.
//! So a broker gives only ids whose millisecond lies below a **mark**, which it has reserved where all brokers meet:
//!
//! * Each broker has one mark, which only goes up, and outlives it.
//! * A mark belongs to the session in which it was reserved: a new session reserves anew.
//! * A partition uses only the mark of the session in which it was acquired.
//! * Whoever acquires a partition begins at the highest mark of all brokers, dead ones included, and above the last row there is. That
//!   mark is read *after* the partition has become its own: a former owner whose session has ended reserves nothing more in it.
//!
//! Whatever a former owner may still write then has ids below all that its successors give. A row that was never acknowledged may
//! appear or not; one that was acknowledged is never overwritten.

use std::fmt::Debug;

use futures_util::future::BoxFuture;

/// Up to where ids may be given in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Another one for every session.
    pub session: u64,
    /// The milliseconds of ids given in it are less.
    pub below_ms: i64,
}

/// No mark could be read or reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ids cannot be reserved: {reason}")]
pub struct MarkError {
    pub reason: String,
}

/// The marks of all brokers, as one of them sees them.
pub trait Marks: Debug + Send + Sync + 'static {
    /// The session that is held now, as far as is known here, with its mark (0: none is reserved yet). `None`: there is no session.
    fn current(&self) -> Option<Mark>;

    /// Moves our mark up to `below_ms` at least, unless it is there already. Answered when it is durable where all brokers meet, and
    /// belongs to the session in the answer.
    fn reserve(&self, below_ms: i64) -> BoxFuture<'_, Result<Mark, MarkError>>;

    /// The highest mark that any broker has reserved before this was called, in whatever session, living or dead. 0: there is none.
    fn highest(&self) -> BoxFuture<'_, Result<i64, MarkError>>;
}

/// For a store that one process has for itself and whose writes end with it: every id is free.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMarks;

impl Marks for NoMarks {
    fn current(&self) -> Option<Mark> {
        Some(Mark { session: 0, below_ms: i64::MAX })
    }

    fn reserve(&self, _: i64) -> BoxFuture<'_, Result<Mark, MarkError>> {
        Box::pin(std::future::ready(Ok(Mark { session: 0, below_ms: i64::MAX })))
    }

    fn highest(&self) -> BoxFuture<'_, Result<i64, MarkError>> {
        Box::pin(std::future::ready(Ok(0)))
    }
}
