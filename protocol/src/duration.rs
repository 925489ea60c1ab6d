//! Lengths of time as people write them: `50ms`, `30s`, `5m`, `2h`, `7d`.

use std::time::Duration;

/// Units and their milliseconds, the longest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The text is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no duration: a whole number and ms, s, m, h or d, such as 50ms, 30s, 5m")]
pub struct BadDuration(pub String);

/// Reads a whole number and a unit. 0 of any unit is allowed.
pub fn parse(text: &str) -> Result<Duration, BadDuration> {
    let bad = || BadDuration(text.to_owned());
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?);
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    number.checked_mul(*factor).map(Duration::from_millis).ok_or_else(bad)
}

/// Writes a duration in the longest unit that divides it; less than a millisecond is left out.
#[must_use]
pub fn format(duration: Duration) -> String {
    let millis = duration.as_millis();
    let fits = |(_, factor): &&(&str, u64)| millis > 0 && millis.is_multiple_of(u128::from(*factor));
    match UNITS.iter().find(fits) {
        Some((name, factor)) => format!("{}{name}", millis / u128::from(*factor)),
        None => "0s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (text, millis) in
            [("50ms", 50), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000), ("90s", 90_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)));
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
        assert_eq!(format(Duration::from_millis(60_000)), "1m");
        assert_eq!(format(Duration::from_millis(1500)), "1500ms");
        assert_eq!(format(parse("0ms").unwrap()), "0s");
        assert_eq!(parse(&format(Duration::from_millis(u64::MAX))), Ok(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for bad in [
            "",
            "5",
            "s",
            "-5s",
            "+5s",
            "1.5s",
            "5 s",
            "5S",
            "5min",
            "1h30m",
            "99999999999999999999s",
            "9999999999999999d",
            "５s",
        ] {
            let text = parse(bad).unwrap_err().to_string();
            assert!(text.contains(&format!("{bad:?}")) && text.contains("30s"), "{text}");
        }
    }
}
