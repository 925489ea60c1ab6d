//! Numbers of partitions, as people write many of them.

/// `0-2, 5`: numbers that follow one another stand as a range. They are given in order.
pub(crate) fn ranges(numbers: &[i16]) -> String {
    let mut runs: Vec<(i16, i16)> = Vec::new();
    for number in numbers.iter().copied() {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): &(i16, i16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// `partition 5`, `partitions 0-2, 5`.
pub(crate) fn partitions(numbers: &[i16]) -> String {
    let noun = if numbers.len() == 1 { "partition" } else { "partitions" };
    format!("{noun} {}", ranges(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_one_another_is_a_range() {
        assert_eq!(partitions(&[5]), "partition 5");
        assert_eq!(partitions(&[0, 1, 2, 5, 7, 8]), "partitions 0-2, 5, 7-8");
        assert_eq!(ranges(&[i16::MAX - 1, i16::MAX]), "32766-32767");
        assert_eq!(ranges(&[]), "");
    }
}
