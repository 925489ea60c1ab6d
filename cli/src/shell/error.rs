//! What is wrong with a line, and where.

use std::fmt::Write;
use std::ops::Range;

use unicode_width::UnicodeWidthChar;

/// So many characters of the line are shown on either side of the place.
const AROUND: usize = 60;

/// A line that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    pub(super) message: String,
    /// The place, in bytes of the line. An empty one at its end: something is missing.
    pub(super) at: Range<usize>,
}

impl LineError {
    pub(super) fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), at }
    }

    /// The message, the line, and a caret under the place.
    pub(super) fn show(&self, line: &str) -> String {
        let (before, rest) = line.split_at_checked(self.at.start).unwrap_or((line, ""));
        let (within, after) = rest.split_at_checked(self.at.len()).unwrap_or((rest, ""));
        let skipped = before.chars().count().saturating_sub(AROUND);
        let mut shown = String::from("  ");
        if skipped > 0 {
            shown.push('…');
        }
        shown.extend(before.chars().skip(skipped).map(harmless));
        let indent = shown.chars().map(width).sum::<usize>();
        shown.extend(within.chars().take(AROUND).map(harmless));
        let carets = within.chars().take(AROUND).map(harmless).map(width).sum::<usize>().max(1);
        let mut left = AROUND.saturating_sub(within.chars().count());
        for c in after.chars().map(harmless) {
            if left == 0 {
                shown.push('…');
                break;
            }
            shown.push(c);
            left -= 1;
        }
        let mut text = format!("{}\n{}\n", self.message, shown.trim_end());
        let _ = write!(text, "{:indent$}{:^>carets$}", "", "");
        text
    }
}

/// As it is shown: one character for each, which moves no cursor but to the right.
fn harmless(c: char) -> char {
    match c {
        '\t' => ' ',
        c if width(c) == 0 => '\u{fffd}',
        c => c,
    }
}

fn width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Names a character that has no business where it is.
pub(super) fn name(c: char) -> String {
    let code = u32::from(c);
    match c {
        '\u{a0}' => format!("a no-break space (U+{code:04X})"),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => format!("the dash {c} (U+{code:04X})"),
        c if c.is_control() || width(c) == 0 || c.is_whitespace() => format!("the character U+{code:04X}"),
        c => format!("{c} (U+{code:04X})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place() {
        let error = LineError::new(13..17, "no number");
        assert_eq!(error.show("create 'q1', many, 60"), "no number\n  create 'q1', many, 60\n               ^^^^");
        let end = LineError::new(4..4, "more");
        assert_eq!(end.show("list"), "more\n  list\n      ^");
    }

    #[test]
    fn wide_and_harmful_characters_do_not_move_it() {
        let line = "put '漢\u{1b}字\t', x";
        let at = line.find('x').unwrap();
        let shown = LineError::new(at..at + 1, "m").show(line);
        assert_eq!(shown, "m\n  put '漢\u{fffd}字 ', x\n                ^");
    }

    #[test]
    fn a_long_line_is_shown_in_part() {
        let line = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let shown = LineError::new(1000..1001, "m").show(&line);
        assert!(shown.lines().all(|l| l.chars().count() < 130), "{shown}");
        let (text, caret) = (shown.lines().nth(1).unwrap(), shown.lines().nth(2).unwrap());
        assert_eq!(text.chars().position(|c| c == 'x'), caret.chars().position(|c| c == '^'));
    }
}
