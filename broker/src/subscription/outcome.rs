//! What the end of a call to `consumeMessages` means.

use hqueue_protocol::endpoint::CallError;

/// What a call did for the `sent` messages that it carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first so many, at least one, are consumed.
    Consumed(u32),
    /// The endpoint answered that it did not: an attempt; again after a wait.
    Failed(String),
    /// The endpoint refuses the first message for good.
    Refused,
    /// The endpoint asks to come again later: no attempt.
    Busy,
    /// Nothing is known of what was consumed. `smaller`: it took too long, or is perhaps too large: the next one is to have fewer messages.
    NoAnswer { reason: String, silence: Silence, smaller: bool },
}

/// How a call without an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No connection: nothing was sent.
    Unsent,
    /// By its time.
    TimedOut,
    /// The connection ended.
    Broken,
}

impl Silence {
    /// The call may have reached the endpoint.
    #[must_use]
    pub const fn may_have_arrived(self) -> bool {
        !matches!(self, Self::Unsent)
    }

    const fn of(error: &CallError) -> Self {
        if error.is_connect() {
            Self::Unsent
        } else if error.is_timeout() {
            Self::TimedOut
        } else {
            Self::Broken
        }
    }
}

impl Outcome {
    #[must_use]
    pub fn of(result: Result<i32, CallError>, sent: u32) -> Self {
        match result {
            Ok(0) => Self::Consumed(sent),
            Ok(-1) => Self::Failed("the subscriber returned -1 (failed)".to_owned()),
            Ok(-2) => Self::Busy,
            Ok(-3) => Self::Refused,
            Ok(k) => match u32::try_from(k) {
                Ok(k) if k <= sent => Self::Consumed(k),
                _ => Self::Failed(format!("the subscriber returned {k} for {sent} messages")),
            },
            Err(error) if error.is_answer() => Self::Failed(error.to_string()),
            Err(error) => Self::NoAnswer {
                silence: Silence::of(&error),
                smaller: error.is_timeout() || error.may_be_too_large(),
                reason: error.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_mean_what_the_contract_says() {
        assert_eq!(Outcome::of(Ok(0), 10), Outcome::Consumed(10));
        assert_eq!(Outcome::of(Ok(10), 10), Outcome::Consumed(10));
        assert_eq!(Outcome::of(Ok(3), 10), Outcome::Consumed(3));
        assert_eq!(Outcome::of(Ok(-2), 10), Outcome::Busy);
        assert_eq!(Outcome::of(Ok(-3), 10), Outcome::Refused);
        for odd in [-1, -4, 11, i32::MAX, i32::MIN] {
            assert!(matches!(Outcome::of(Ok(odd), 10), Outcome::Failed(_)), "{odd}");
        }
    }

    #[test]
    fn a_connection_that_cannot_be_made_sent_nothing() {
        let error = CallError::Connect { address: "a:1".into(), reason: "refused".into() };
        assert!(matches!(Outcome::of(Err(error), 1), Outcome::NoAnswer { silence: Silence::Unsent, smaller: false, .. }));
    }
}
