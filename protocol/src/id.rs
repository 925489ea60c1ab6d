//! Message ids: where they come from, how they are written, how they follow one another.

use std::fmt;
use std::str::FromStr;

/// The position of a message in its partition: strictly increasing, assigned by the partition's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// Milliseconds since 1970-01-01 UTC.
    pub timestamp: i64,
    /// Counts within the millisecond, 0 to 32,767.
    pub sequence: i16,
}

impl MessageId {
    /// Below every id that a broker assigns.
    pub const MIN: Self = Self { timestamp: 0, sequence: 0 };
    /// Above every id that a broker assigns.
    pub const MAX: Self = Self { timestamp: i64::MAX, sequence: i16::MAX };

    #[must_use]
    pub const fn new(timestamp: i64, sequence: i16) -> Self {
        Self { timestamp, sequence }
    }

    /// The smallest id above this one. The sequence overflows into the next millisecond.
    #[must_use]
    pub const fn successor(self) -> Self {
        if self.sequence == i16::MAX {
            Self { timestamp: self.timestamp.saturating_add(1), sequence: 0 }
        } else {
            Self { timestamp: self.timestamp, sequence: self.sequence + 1 }
        }
    }

    /// The id that follows `last` when the clock shows `now_ms`: the clock may stand still or step back, ids never do.
    #[must_use]
    pub fn next(last: Option<Self>, now_ms: i64) -> Self {
        let by_clock = Self { timestamp: now_ms.max(0), sequence: 0 };
        match last {
            Some(last) => by_clock.max(last.successor()),
            None => by_clock,
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.timestamp, self.sequence)
    }
}

/// The text is no `milliseconds:sequence`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no message id (milliseconds:sequence, such as 1700000000000:12)")]
pub struct BadMessageId(pub String);

impl FromStr for MessageId {
    type Err = BadMessageId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadMessageId(text.to_owned());
        let (timestamp, sequence) = text.split_once(':').ok_or_else(bad)?;
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(timestamp) || !digits(sequence) {
            return Err(bad());
        }
        Ok(Self { timestamp: timestamp.parse().map_err(|_| bad())?, sequence: sequence.parse().map_err(|_| bad())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_gives_the_id_while_it_moves_on() {
        let last = MessageId::new(1000, 7);
        assert_eq!(MessageId::next(Some(last), 1001), MessageId::new(1001, 0));
        assert_eq!(MessageId::next(None, 5), MessageId::new(5, 0));
    }

    #[test]
    fn ids_rise_when_the_clock_stands_still_or_steps_back() {
        let last = MessageId::new(1000, 7);
        assert_eq!(MessageId::next(Some(last), 1000), MessageId::new(1000, 8));
        assert_eq!(MessageId::next(Some(last), -5), MessageId::new(1000, 8));
    }

    #[test]
    fn a_full_millisecond_overflows_into_the_next() {
        let last = MessageId::new(1000, i16::MAX);
        assert_eq!(MessageId::next(Some(last), 1000), MessageId::new(1001, 0));
    }

    #[test]
    fn text_form_goes_both_ways_and_refuses_the_rest() {
        let id = MessageId::new(1_700_000_000_000, 12);
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", ":", "1:", ":1", "-1:2", "+1:2", "1:32768", "1:2:3", "1 :2", "99999999999999999999:1"] {
            assert!(bad.parse::<MessageId>().is_err(), "{bad:?}");
        }
    }
}
