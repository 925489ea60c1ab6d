//! The characters that quote, straight and curly: commands copied from a page carry the curly ones.

/// Single quotes: the straight one, the two curly ones, the prime.
const SINGLE: [char; 4] = ['\'', '\u{2018}', '\u{2019}', '\u{2032}'];
/// Double quotes: the same four.
const DOUBLE: [char; 4] = ['"', '\u{201c}', '\u{201d}', '\u{2033}'];

pub(super) fn is_quote(c: char) -> bool {
    SINGLE.contains(&c) || DOUBLE.contains(&c)
}

pub(super) fn is_double(c: char) -> bool {
    DOUBLE.contains(&c)
}

/// A straight quote is closed by itself alone, so that text within it may hold curly ones. A curly one is closed by any of its kind: the
/// original's own example begins with a curly quote and ends with a prime.
pub(super) fn closes(open: char, c: char) -> bool {
    match open {
        '\'' | '"' => c == open,
        _ => SINGLE.contains(&open) && SINGLE.contains(&c) || DOUBLE.contains(&open) && DOUBLE.contains(&c),
    }
}

/// What closes it when the shell itself completes a word.
pub(super) fn closing(open: char) -> char {
    match open {
        '\u{2018}' => '\u{2019}',
        '\u{201c}' => '\u{201d}',
        other => other,
    }
}
