//! The nearest known name to one that is not known.

use strsim::osa_distance;

/// The first of those that take the fewest changes: a letter put in, taken out, exchanged, or swapped with its neighbour.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A name is short; the work grows with the product of the lengths.
    let name: String = name.chars().take(64).collect::<String>().to_ascii_lowercase();
    known.min_by_key(|known| osa_distance(&name, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger() {
        let known = ["create", "list", "describe", "delete_subscriber", "list_subscribers"];
        for (slip, meant) in
            [("craete", "create"), ("lst", "list"), ("DESCRIBE", "describe"), ("delete_subscribers", "delete_subscriber")]
        {
            assert_eq!(nearest(slip, known.into_iter()), Some(meant));
        }
    }
}
