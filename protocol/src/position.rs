//! Positions in a partition, as people write them.
//!
//! | text | position |
//! |---|---|
//! | `earliest` | the oldest message |
//! | `latest` | behind the newest message at this moment |
//! | `1700000000000:12` | this message, or the first behind it |
//! | `1700000000000` | the first message of this millisecond or later |
//! | `2026-03-29T02:30:00+05:30`, `2026-03-29T02:30:00Z` | the first message of this moment or later |
//! | `-10m` | the first message of the last ten minutes |
//!
//! A time of day alone (`14:05`) is none, though it reads as an id.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};

use crate::duration;
use crate::id::MessageId;

/// Where reading begins: at the first message whose id is not below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Earliest,
    Latest,
    Id(MessageId),
    /// Milliseconds since 1970-01-01 UTC.
    Time(i64),
    /// So long before now.
    Ago(Duration),
}

impl Position {
    /// The id that is meant. `now_ms` is the clock in milliseconds since 1970 UTC, `last` the last id of the partition, if it has
    /// ever had a message. Positions before 1970 are the earliest.
    #[must_use]
    pub fn resolve(self, now_ms: i64, last: Option<MessageId>) -> MessageId {
        match self {
            Self::Earliest => MessageId::MIN,
            Self::Latest => last.map_or(MessageId::MIN, MessageId::successor),
            Self::Id(id) => id,
            Self::Time(ms) => MessageId::new(ms.max(0), 0),
            Self::Ago(duration) => {
                let ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
                MessageId::new(now_ms.saturating_sub(ms).max(0), 0)
            }
        }
    }
}

/// An id as text that is read as this position. It differs from the id's own text only where that could be taken for a time of day.
#[must_use]
pub fn text_of_id(id: MessageId) -> String {
    let text = id.to_string();
    if time_of_day(&text).is_some() { format!("{}:{:03}", id.timestamp, id.sequence) } else { text }
}

/// The text is no position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPosition {
    #[error(
        "{0:?} is no position: an id (1700000000000:12), milliseconds since 1970, a time (2026-03-29T02:30:00Z), -10m, earliest or latest"
    )]
    Unknown(String),
    #[error("{0:?} has no time zone: add Z for UTC, or an offset such as +05:30")]
    NoZone(String),
    #[error(
        "{text:?} is a time of day and lacks the day and the zone: 2026-03-29T{shown}Z (UTC), 2026-03-29T{shown}+02:00, or -10m"
    )]
    TimeOfDay { text: String, shown: String },
    #[error("{0:?} looks like seconds, a position is in milliseconds since 1970: {0}000")]
    Seconds(String),
    #[error("{text:?} is no time: {reason}")]
    Time { text: String, reason: String },
}

/// Smaller numbers are refused: as milliseconds they would lie before March 1973.
const LEAST_MILLISECONDS: i64 = 100_000_000_000;

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Self, BadPosition> {
        let unknown = || BadPosition::Unknown(text.to_owned());
        match text {
            "earliest" => return Ok(Self::Earliest),
            "latest" => return Ok(Self::Latest),
            "" => return Err(unknown()),
            _ => {}
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return match text.parse() {
                Ok(ms) if ms < LEAST_MILLISECONDS => Err(BadPosition::Seconds(text.to_owned())),
                Ok(ms) => Ok(Self::Time(ms)),
                Err(_) => Err(unknown()),
            };
        }
        if let Some(ago) = text.strip_prefix('-') {
            return duration::parse(ago).map(Self::Ago).map_err(|_| unknown());
        }
        // Before ids: nobody who writes 14:05 means message 5 of the 14th millisecond of 1970, and gets everything by it.
        if let Some(shown) = time_of_day(text) {
            return Err(BadPosition::TimeOfDay { text: text.to_owned(), shown });
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        time(text).unwrap_or_else(|| Err(unknown()))
    }
}

/// What begins as a time of day does: one or two digits, a colon, two digits, and no further digit. As it stands in a time of the calendar;
/// hours and minutes that no day has are replaced.
fn time_of_day(text: &str) -> Option<String> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, more) = rest.split_at_checked(2)?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_one = matches!(hour.len(), 1 | 2) && digits(hour) && digits(minute) && !more.starts_with(|c: char| c.is_ascii_digit());
    let no_day_has_it = || "14:05".to_owned();
    is_one.then(|| {
        let padded = format!("{hour:0>2}:{minute}");
        if padded.parse::<Time>().is_ok() { padded } else { no_day_has_it() }
    })
}

/// A time of the calendar; `None` if the text does not even look like one.
fn time(text: &str) -> Option<Result<Position, BadPosition>> {
    let looks_like_one =
        text.get(..5).is_some_and(|begin| begin.ends_with('-') && begin.bytes().take(4).all(|b| b.is_ascii_digit()));
    match text.parse::<Timestamp>() {
        Ok(time) => Some(Ok(Position::Time(time.as_millisecond()))),
        Err(_) if text.parse::<DateTime>().is_ok() => Some(Err(BadPosition::NoZone(text.to_owned()))),
        Err(error) if looks_like_one => Some(Err(BadPosition::Time { text: text.to_owned(), reason: error.to_string() })),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn parse(text: &str) -> Result<Position, BadPosition> {
        text.parse()
    }

    #[test]
    fn all_forms_are_read() {
        assert_eq!(parse("earliest"), Ok(Position::Earliest));
        assert_eq!(parse("latest"), Ok(Position::Latest));
        assert_eq!(parse("1700000000000:12"), Ok(Position::Id(MessageId::new(1_700_000_000_000, 12))));
        assert_eq!(parse("5:0"), Ok(Position::Id(MessageId::new(5, 0))));
        assert_eq!(parse("1700000000000"), Ok(Position::Time(1_700_000_000_000)));
        assert_eq!(parse("-10m"), Ok(Position::Ago(Duration::from_secs(600))));
    }

    #[test]
    fn zones_count_to_the_minute() {
        let utc = 1_774_751_400_000;
        assert_eq!(parse("2026-03-29T02:30:00Z"), Ok(Position::Time(utc)));
        assert_eq!(parse("2026-03-29T02:30:00+05:30"), Ok(Position::Time(utc - 19_800_000)));
        assert_eq!(parse("2026-03-29T02:30:00.123-02:30"), Ok(Position::Time(utc + 9_000_123)));
        assert_eq!(parse("2026-03-29 02:30:00Z"), Ok(Position::Time(utc)));
    }

    #[test]
    fn a_time_without_a_zone_is_refused_as_such() {
        for text in ["2026-03-29T02:30:00", "2026-03-29T02:30", "2026-03-29"] {
            assert_eq!(parse(text), Err(BadPosition::NoZone(text.to_owned())));
        }
        assert!(parse("2026-03-29T02:30").unwrap_err().to_string().contains("time zone"));
    }

    #[test]
    fn a_time_of_day_is_no_id_and_the_error_gives_a_form_that_works() {
        for (text, works) in [
            ("14:05", "2026-03-29T14:05Z"),
            ("9:30", "2026-03-29T09:30Z"),
            ("00:00", "2026-03-29T00:00Z"),
            ("14:05:30", "2026-03-29T14:05Z"),
            ("14:05Z", "2026-03-29T14:05Z"),
            ("9:30 pm", "2026-03-29T09:30Z"),
            ("14:05:00+02:00", "2026-03-29T14:05Z"),
            ("99:99", "2026-03-29T14:05Z"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("day") && error.contains("zone"), "{error}");
            assert!(error.contains(works), "{text}: {error}");
            for form in error.split([' ', ',']).filter(|word| word.starts_with("2026")) {
                assert!(matches!(parse(form), Ok(Position::Time(_))), "{form}");
            }
        }
    }

    #[test]
    fn ids_that_look_less_like_a_time_of_day_are_ids() {
        for (text, id) in [
            ("5:0", MessageId::new(5, 0)),
            ("14:5", MessageId::new(14, 5)),
            ("14:005", MessageId::new(14, 5)),
            ("14:123", MessageId::new(14, 123)),
            ("140:05", MessageId::new(140, 5)),
            ("1700000000000:05", MessageId::new(1_700_000_000_000, 5)),
        ] {
            assert_eq!(parse(text), Ok(Position::Id(id)), "{text}");
        }
        for id in [MessageId::MIN, MessageId::new(14, 5), MessageId::new(14, 15), MessageId::new(9, 99), MessageId::MAX] {
            assert_eq!(parse(&text_of_id(id)), Ok(Position::Id(id)));
        }
    }

    #[test]
    fn seconds_are_refused_as_such() {
        assert_eq!(parse("1700000000"), Err(BadPosition::Seconds("1700000000".to_owned())));
        assert!(parse("99999999999").unwrap_err().to_string().contains("looks like seconds"));
        assert!(parse("100000000000").is_ok());
        assert!(parse("99999999999999999999").is_err());
    }

    #[test]
    fn refusals_repeat_the_word() {
        for text in ["", "newest", "10m", "-10", "-m", "--5s", "1:2:3", "2026-13-01T00:00:00Z", "2026-02-30", "Earliest", "-1:5"]
        {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn positions_are_resolved_to_the_first_id_wanted() {
        let last = Some(MessageId::new(1000, 32_767));
        assert_eq!(Position::Earliest.resolve(NOW, last), MessageId::MIN);
        assert_eq!(Position::Latest.resolve(NOW, last), MessageId::new(1001, 0));
        assert_eq!(Position::Latest.resolve(NOW, None), MessageId::MIN);
        assert_eq!(Position::Time(5).resolve(NOW, last), MessageId::new(5, 0));
        assert_eq!(Position::Time(-5).resolve(NOW, last), MessageId::MIN);
        assert_eq!(Position::Ago(Duration::from_secs(1)).resolve(NOW, last), MessageId::new(NOW - 1000, 0));
        assert_eq!(Position::Ago(Duration::MAX).resolve(NOW, last), MessageId::MIN);
    }
}
