//! A line taken apart: the name of a command, and its words in one of two forms.
//!
//! The original's form has commas between its words, and may end with a dictionary: `create 'q1', 32, 86400, {'key' => 'value'}`. The
//! plain form is that of the command line: `create q1 --partitions 32 --ttl 86400`. A comma or a dictionary behind the first word makes
//! the difference; a line with one word is the same in both.

use std::ops::Range;

use super::error::LineError;
use super::quotes::is_quote;
use super::scanner::{Bare, Scanner, Word, is_space};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: Word,
    pub(super) words: Words,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    Plain(Vec<Word>),
    Original { words: Vec<Word>, dictionary: Option<Dictionary> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dictionary {
    pub(super) pairs: Vec<(Word, Word)>,
    pub(super) at: Range<usize>,
}

/// Takes a line apart. Nothing stands on an empty one, or behind a `#` that begins it.
pub(super) fn parse(line: &str) -> Result<Option<Line>, LineError> {
    let mut scanner = Scanner::new(line);
    scanner.space()?;
    if matches!(scanner.peek(), None | Some('#')) {
        return Ok(None);
    }
    let name = command_name(&mut scanner)?;
    scanner.space()?;
    let words = if is_original(&scanner) { original(&mut scanner)? } else { plain(&mut scanner)? };
    Ok(Some(Line { name, words }))
}

const BEHIND_A_NAME: &str = "a space is missing behind the name of the command";

fn command_name(scanner: &mut Scanner<'_>) -> Result<Word, LineError> {
    if scanner.peek().is_some_and(is_quote) {
        return Err(scanner.here("a line begins with the name of a command, which stands without quotes"));
    }
    let name = scanner.word(Bare::Original).map_err(|error| match scanner.peek() {
        Some(c) if is_quote(c) => scanner.here(BEHIND_A_NAME),
        _ => error,
    })?;
    match scanner.peek() {
        Some(c) if !is_space(c) => Err(scanner.here(BEHIND_A_NAME)),
        _ => Ok(name),
    }
}

/// Looks at the first word, and at what follows it.
pub(super) fn is_original(scanner: &Scanner<'_>) -> bool {
    let mut ahead = scanner.clone();
    if ahead.peek() == Some('-') {
        return false;
    }
    if ahead.peek() != Some('{') && ahead.word(Bare::Original).is_err() {
        return false;
    }
    // A space that is none is found again, and refused, by whoever reads on.
    let _ = ahead.space();
    matches!(ahead.peek(), Some(',' | '{'))
}

fn plain(scanner: &mut Scanner<'_>) -> Result<Words, LineError> {
    let mut words = Vec::new();
    while scanner.peek().is_some() {
        words.push(scanner.word(Bare::Plain)?);
        if scanner.peek().is_some_and(|c| !is_space(c) && !c.is_whitespace()) {
            return Err(scanner.here("a space is missing between a quote and this"));
        }
        scanner.space()?;
    }
    Ok(Words::Plain(words))
}

fn original(scanner: &mut Scanner<'_>) -> Result<Words, LineError> {
    let (mut words, mut found) = (Vec::new(), None);
    loop {
        if scanner.peek() == Some('{') {
            found = Some(dictionary(scanner)?);
        } else {
            words.push(value(scanner, "a word is missing here")?);
        }
        scanner.space()?;
        match scanner.peek() {
            None => return Ok(Words::Original { words, dictionary: found }),
            Some(_) if found.is_some() => return Err(scanner.here("a dictionary stands at the end, and there is one at most")),
            Some(',') => scanner.bump(),
            Some(_) => return Err(scanner.here("a comma is missing before this")),
        };
        scanner.space()?;
    }
}

/// A word that has to be there.
fn value(scanner: &mut Scanner<'_>, missing: &str) -> Result<Word, LineError> {
    let word = scanner.word(Bare::Original)?;
    if word.at.is_empty() { Err(scanner.here(missing)) } else { Ok(word) }
}

fn dictionary(scanner: &mut Scanner<'_>) -> Result<Dictionary, LineError> {
    let start = scanner.at();
    scanner.bump();
    let mut pairs = Vec::new();
    scanner.space()?;
    while !scanner.take("}") {
        let unclosed = || LineError::new(start..start + 1, "the dictionary is not closed: } is missing");
        if scanner.peek().is_none() {
            return Err(unclosed());
        }
        let key = value(scanner, "a key is missing here")?;
        scanner.space()?;
        if !scanner.take("=>") {
            return Err(scanner.here(format!("behind the key {} stands => and its value", key.text())));
        }
        scanner.space()?;
        let its_value = value(scanner, "a value is missing here")?;
        pairs.push((key, its_value));
        scanner.space()?;
        match scanner.peek() {
            None => return Err(unclosed()),
            Some(',') => drop(scanner.bump()),
            Some('}') => {}
            Some(_) => return Err(scanner.here("a comma or } is missing before this")),
        }
        scanner.space()?;
    }
    Ok(Dictionary { pairs, at: start..scanner.at() })
}
