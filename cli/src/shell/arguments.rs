//! The words of a line as those of the command line: the original's form is turned into its plain twin by the table of commands.

use std::ffi::OsString;
use std::ops::Range;

use clap::{ArgAction, Command};

use super::error::LineError;
use super::line::{Dictionary, Line, Words};
use super::names::nearest;
use super::scanner::Word;
use crate::table::{self, Entry, Kind, Original};

/// Flags that no dictionary sets: they belong to the connection, or to the command line alone.
const NOT_IN_DICTIONARIES: [&str; 6] = ["connect", "zookeeper-auth", "format", "yes", "help", "version"];

/// The flag that a setting becomes.
const SETTINGS: &str = "set";

/// A word for the command line, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) text: OsString,
    pub(super) at: Range<usize>,
}

impl Argument {
    /// `--flag=value`, in one: a value may begin with a dash.
    fn flag(name: &str, value: &[u8], at: Range<usize>) -> Self {
        let mut text = OsString::from(format!("--{name}="));
        text.push(Word { bytes: value.to_vec(), at: at.clone() }.os());
        Self { text, at }
    }
}

impl From<&Word> for Argument {
    fn from(word: &Word) -> Self {
        Self { text: word.os(), at: word.at.clone() }
    }
}

/// The command's name, then flags, then what keeps its place.
pub(super) fn arguments(entry: &Entry, clap: &Command, line: &Line, end: usize) -> Result<Vec<Argument>, LineError> {
    let mut all = vec![Argument { text: entry.name.into(), at: line.name.at.clone() }];
    match (&line.words, &entry.original) {
        (Words::Plain(words), _) => all.extend(words.iter().map(Argument::from)),
        (Words::Original { words, dictionary }, Some(original)) => {
            let form = Form { entry, original, clap };
            let (flags, places) = form.words(words, end)?;
            all.extend(flags);
            if let Some(dictionary) = dictionary {
                all.extend(form.dictionary(dictionary)?);
            }
            all.extend(places);
        }
        (Words::Original { words, dictionary }, None) => {
            let at = words.first().map(|w| w.at.clone()).or(dictionary.as_ref().map(|d| d.at.clone())).unwrap_or(end..end);
            return Err(LineError::new(at, format!("{} is written without commas: {}", entry.name, entry.example)));
        }
    }
    Ok(all)
}

/// The original's form of one command.
struct Form<'a> {
    entry: &'a Entry,
    original: &'a Original,
    clap: &'a Command,
}

impl Form<'_> {
    fn signature(&self) -> String {
        self.entry.signature().unwrap_or_default()
    }

    /// Those that become flags, and those that keep their places.
    fn words(&self, words: &[Word], end: usize) -> Result<(Vec<Argument>, Vec<Argument>), LineError> {
        let wanted = self.original.words;
        if let Some(extra) = words.get(wanted.len()) {
            return Err(LineError::new(extra.at.clone(), format!("this is one too many: {}", self.signature())));
        }
        if let Some(missing) = wanted.get(words.len()).filter(|word| !word.optional) {
            return Err(LineError::new(end..end, format!("{} is missing: {}", missing.name, self.signature())));
        }
        let (mut flags, mut places) = (Vec::new(), Vec::new());
        for (word, wanted) in words.iter().zip(wanted) {
            match wanted.flag {
                Some(flag) => flags.push(Argument::flag(flag, &word.bytes, word.at.clone())),
                None => {
                    if wanted.kind == Kind::Value && word.bytes.starts_with(b"-") {
                        places.push(Argument { text: "--".into(), at: word.at.clone() });
                    }
                    places.push(word.into());
                }
            }
        }
        Ok((flags, places))
    }

    fn dictionary(&self, dictionary: &Dictionary) -> Result<Vec<Argument>, LineError> {
        if self.original.dictionary == table::Dictionary::None {
            return Err(LineError::new(dictionary.at.clone(), format!("it takes no dictionary: {}", self.signature())));
        }
        let mut flags = Vec::new();
        for (n, (key, value)) in dictionary.pairs.iter().enumerate() {
            if dictionary.pairs.iter().take(n).any(|(before, _)| before.bytes == key.bytes) {
                return Err(LineError::new(key.at.clone(), format!("the key {} is there twice", key.text())));
            }
            // A setting, unless it is one of the command's own flags.
            if self.original.dictionary == table::Dictionary::Settings && !self.is_flag(key) {
                flags.push(setting(key, value)?);
            } else {
                self.flag(key, value, &mut flags)?;
            }
        }
        Ok(flags)
    }

    /// A key is the name of a flag, or of several of one kind: `'topics' => 'a,b'` is `--topic a --topic b`.
    fn flag(&self, key: &Word, value: &Word, flags: &mut Vec<Argument>) -> Result<(), LineError> {
        let name = flag_name(key);
        let at = key.at.start..value.at.end;
        if let Some(flag) = self.flags().find(|flag| flag.get_long() == Some(&name)) {
            match (flag.get_action(), value.bytes.as_slice()) {
                (ArgAction::SetTrue, b"true") => flags.push(Argument { text: format!("--{name}").into(), at }),
                (ArgAction::SetTrue, b"false") => {}
                (ArgAction::SetTrue, _) => return Err(LineError::new(value.at.clone(), format!("{name} can be true or false"))),
                _ => flags.push(Argument::flag(&name, &value.bytes, at)),
            }
            return Ok(());
        }
        let several = name.strip_suffix('s').and_then(|one| self.flags().find(|flag| flag.get_long() == Some(one)));
        if let Some(one) = several.filter(|flag| matches!(flag.get_action(), ArgAction::Append)).and_then(clap::Arg::get_long) {
            let parts = value.bytes.split(|b| *b == b',').filter(|_| !value.bytes.is_empty());
            flags.extend(parts.map(|part| Argument::flag(one, part, at.clone())));
            return Ok(());
        }
        let known = nearest(&name, self.flags().filter_map(clap::Arg::get_long)).unwrap_or_default();
        Err(LineError::new(key.at.clone(), format!("there is no key {}; the nearest known one is {known}", key.text())))
    }

    fn is_flag(&self, key: &Word) -> bool {
        let name = flag_name(key);
        self.flags().any(|flag| flag.get_long() == Some(&name) && name != SETTINGS)
    }

    /// Those that a dictionary may set.
    fn flags(&self) -> impl Iterator<Item = &clap::Arg> {
        flags_of_dictionary(self.entry, self.clap)
    }
}

/// The flags that are keys of a command's dictionary.
pub(super) fn flags_of_dictionary<'a>(entry: &'a Entry, clap: &'a Command) -> impl Iterator<Item = &'a clap::Arg> {
    let by_place = entry.original.iter().flat_map(|original| original.words).filter_map(|word| word.flag);
    let by_place: Vec<&str> = by_place.collect();
    let command = clap.find_subcommand(entry.name).into_iter();
    let flags = command.flat_map(|command| command.get_opts().chain(command.get_arguments().filter(|a| is_switch(a))));
    flags
        .filter(move |flag| flag.get_long().is_some_and(|name| !NOT_IN_DICTIONARIES.contains(&name) && !by_place.contains(&name)))
}

/// A key may be written as the flag is, or with underscores, large or small.
pub(super) fn flag_name(key: &Word) -> String {
    key.text().to_ascii_lowercase().replace('_', "-")
}

fn is_switch(flag: &clap::Arg) -> bool {
    matches!(flag.get_action(), ArgAction::SetTrue)
}

fn setting(key: &Word, value: &Word) -> Result<Argument, LineError> {
    if key.bytes.is_empty() || key.bytes.contains(&b'=') {
        return Err(LineError::new(key.at.clone(), "a key is not empty and holds no ="));
    }
    let pair = [key.bytes.as_slice(), b"=", value.bytes.as_slice()].concat();
    Ok(Argument::flag(SETTINGS, &pair, key.at.start..value.at.end))
}
