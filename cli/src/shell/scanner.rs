//! Words of a line, with their places.
//!
//! A word is bare or in quotes. In single quotes `\\` and `\'` are a backslash and a quote, and everything else is itself. In double quotes
//! there are further escapes, those that `scan` prints: `\t`, `\n`, `\r`, `\xff` for a byte, `\u{200b}` for a character. Outside quotes,
//! nothing is silently taken for something else: quotes in the middle of a word, backslashes, dashes and spaces that only look like the
//! usual ones are refused.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;

use super::error::{LineError, name};
use super::quotes::{closes, is_double, is_quote};

/// A word without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Escapes can make any bytes.
    pub(super) bytes: Vec<u8>,
    pub(super) at: Range<usize>,
}

impl Word {
    pub(super) fn os(&self) -> OsString {
        OsString::from_vec(self.bytes.clone())
    }

    /// For messages and for comparing with names.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Where bare words end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bare {
    /// At a space: as on the command line.
    Plain,
    /// At a space or a sign of the original's syntax.
    Original,
}

/// Goes through a line.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Goes over the next character.
    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Goes over this text, if it is next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// An error about the next character.
    pub(super) fn here(&self, message: impl Into<String>) -> LineError {
        LineError::new(self.at..self.at + self.peek().map_or(0, char::len_utf8), message)
    }

    /// Goes over spaces. What only looks like one is refused.
    pub(super) fn space(&mut self) -> Result<(), LineError> {
        while self.peek().is_some_and(is_space) {
            self.bump();
        }
        match self.peek() {
            Some(c) if c.is_whitespace() => {
                Err(self.here(format!("{} is no space here: write a plain one, or put it in quotes", name(c))))
            }
            _ => Ok(()),
        }
    }

    /// The next word, if one begins here.
    pub(super) fn word(&mut self, bare: Bare) -> Result<Word, LineError> {
        match self.peek() {
            Some(c) if is_quote(c) => self.quoted(),
            _ => self.bare(bare),
        }
    }

    fn quoted(&mut self) -> Result<Word, LineError> {
        let start = self.at;
        let open = self.bump().unwrap_or('\'');
        let mut bytes = Vec::new();
        loop {
            let from = self.at;
            match self.bump() {
                None => return Err(LineError::new(start..start + open.len_utf8(), format!("the quote {open} is not closed"))),
                Some(c) if closes(open, c) => return Ok(Word { bytes, at: start..self.at }),
                Some('\\') if is_double(open) => self.escape(from, &mut bytes)?,
                Some('\\') if self.peek().is_some_and(|c| c == '\\' || closes(open, c)) => push(&mut bytes, self.bump()),
                Some(c) => push(&mut bytes, Some(c)),
            }
        }
    }

    /// What stands behind a backslash in double quotes.
    fn escape(&mut self, from: usize, bytes: &mut Vec<u8>) -> Result<(), LineError> {
        match self.bump() {
            Some('n') => bytes.push(b'\n'),
            Some('t') => bytes.push(b'\t'),
            Some('r') => bytes.push(b'\r'),
            Some('0') => bytes.push(0),
            Some('x') => {
                let byte =
                    self.rest().get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+')));
                let Some(byte) = byte else {
                    return Err(LineError::new(from..self.at, "behind \\x stand two hexadecimal digits"));
                };
                self.at += 2;
                bytes.push(byte);
            }
            Some('u') => {
                let number = self.rest().strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(hex, _)| hex);
                let c = number.and_then(|hex| u32::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+')));
                let (Some(hex), Some(c)) = (number, c.and_then(char::from_u32)) else {
                    return Err(LineError::new(from..self.at, "\\u is written \\u{200b}, with the number of a character"));
                };
                self.at += hex.len() + 2;
                push(bytes, Some(c));
            }
            Some(c) if c == '\\' || is_quote(c) => push(bytes, Some(c)),
            Some(c) => {
                let known = r#"\\ \" \n \t \r \0 \xff \u{200b}"#;
                return Err(LineError::new(
                    from..self.at,
                    format!("there is no escape \\{c}; those in double quotes are {known}"),
                ));
            }
            // The quote is not closed, which is said next.
            None => {}
        }
        Ok(())
    }

    fn bare(&mut self, kind: Bare) -> Result<Word, LineError> {
        let start = self.at;
        let mut bytes = Vec::new();
        while let Some(c) = self.peek() {
            let ends = is_space(c) || kind == Bare::Original && matches!(c, ',' | '{' | '}' | '=');
            if ends {
                break;
            }
            match c {
                // --topic='a b'
                c if is_quote(c) && kind == Bare::Plain && bytes.last() == Some(&b'=') => {
                    bytes.extend(self.quoted()?.bytes);
                    break;
                }
                c if is_quote(c) => {
                    return Err(self.here(format!("{} in the middle of a word: put the whole word in quotes", name(c))));
                }
                '\\' => return Err(self.here("a backslash outside quotes: put the whole word in quotes")),
                '\u{2010}'..='\u{2015}' | '\u{2212}' if bytes.is_empty() => {
                    return Err(self.here(format!("{} is no hyphen: write -, or put the word in quotes", name(c))));
                }
                c if c.is_whitespace() || c.is_control() => {
                    return Err(self.here(format!("{} outside quotes: put the whole word in quotes", name(c))));
                }
                c => push(&mut bytes, Some(c)),
            }
            self.bump();
        }
        Ok(Word { bytes, at: start..self.at })
    }
}

pub(super) const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn push(bytes: &mut Vec<u8>, c: Option<char>) {
    if let Some(c) = c {
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}
