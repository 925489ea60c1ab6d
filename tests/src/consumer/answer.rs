//! What a consumer may answer.

use std::time::Duration;

use crate::message::Message;

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This i32.
    Value(i32),
    /// A Thrift exception with this text.
    Exception(String),
    /// This i32 after so long: a slow consumer, but not a late one.
    Slow(Duration, i32),
    /// This i32 after so long, when its caller has given up.
    Late(Duration, i32),
    /// Nothing, until the consumer is told to answer all, or is stopped.
    Hang,
    /// The connection is closed without a reply.
    Close,
}

impl Answer {
    /// How many of `sent` messages a broker that has this answer may take for consumed.
    pub(super) fn consumed(&self, sent: usize) -> usize {
        match self {
            Self::Value(0) | Self::Slow(_, 0) => sent,
            Self::Value(k) | Self::Slow(_, k) => usize::try_from(*k).ok().filter(|k| *k <= sent).unwrap_or(0),
            _ => 0,
        }
    }
}

/// A script that gives these answers, one a call, and then consumes everything.
pub fn turns(answers: impl IntoIterator<Item = Answer, IntoIter: Send + 'static>) -> impl FnMut(&[Message]) -> Answer + Send {
    let mut answers = answers.into_iter();
    move |_| answers.next().unwrap_or(Answer::Value(0))
}
