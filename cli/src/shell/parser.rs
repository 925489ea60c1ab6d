//! From a line to what it asks for: the same commands that the command line runs.

use std::ops::Range;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command as Clap, FromArgMatches};

use super::arguments::{Argument, arguments};
use super::error::LineError;
use super::line::{self, Line, Words};
use super::names::nearest;
use super::scanner::Word;
use crate::command::{Arguments, Command};
use crate::connection::{Connection, Format};
use crate::table::{self, ENTRIES, Entry};

/// What a line asks for.
#[derive(Debug)]
pub(super) enum Input {
    Nothing,
    Exit,
    /// The text of some help.
    Help(String),
    Run(Box<Command>),
}

/// Reads lines.
#[derive(Debug)]
pub(super) struct Parser {
    clap: Clap,
}

impl Parser {
    /// Commands are connected, and print, as the shell was told to, unless their line says otherwise.
    pub(super) fn new(connection: &Connection) -> Self {
        let clap = table::in_shell().mut_subcommands(|command| command.mut_args(|arg| inherit(arg, connection)));
        let mut parser = Self { clap };
        parser.clap.build();
        parser
    }

    pub(super) const fn clap(&self) -> &Clap {
        &self.clap
    }

    pub(super) fn parse(&self, text: &str) -> Result<Input, LineError> {
        let Some(line) = line::parse(text)? else { return Ok(Input::Nothing) };
        let entry = entry(&line.name)?;
        match entry.name {
            "help" => self.help(&line),
            "exit" => match words(&line).first() {
                Some(word) => Err(LineError::new(word.at.clone(), "exit stands alone")),
                None => Ok(Input::Exit),
            },
            _ => {
                let arguments = arguments(entry, &self.clap, &line, text.len())?;
                self.command(entry, &arguments, text.len()).map_err(|error| about_commas(error, &line))
            }
        }
    }

    fn help(&self, line: &Line) -> Result<Input, LineError> {
        let overview = || table::overview(&self.clap, Entry::in_shell) + HOW_LINES_ARE_WRITTEN;
        let text = match words(line).as_slice() {
            [] => overview(),
            [word] => match entry(word)? {
                Entry { name: "help" | "exit", .. } => overview(),
                found => {
                    self.clap.find_subcommand(found.name).map(|c| c.clone().render_long_help().to_string()).unwrap_or_default()
                }
            },
            // The help of a command has all of its actions.
            [name, action] if table::has_action(&self.clap, &name.os(), &action.os()) => self.help_of(entry(name)?),
            [_, extra, ..] => return Err(LineError::new(extra.at.clone(), "help takes one command")),
        };
        Ok(Input::Help(text))
    }

    fn help_of(&self, entry: &Entry) -> String {
        self.clap.find_subcommand(entry.name).map(|c| c.clone().render_long_help().to_string()).unwrap_or_default()
    }

    fn command(&self, entry: &Entry, arguments: &[Argument], end: usize) -> Result<Input, LineError> {
        let words = arguments.iter().map(|argument| argument.text.clone());
        let found = self.clap.clone().try_get_matches_from(words);
        match found.and_then(|matches: ArgMatches| Arguments::from_arg_matches(&matches)) {
            Ok(Arguments { command }) => Ok(Input::Run(Box::new(command))),
            Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(Input::Help(self.help_of(entry))),
            Err(error) => Err(LineError::new(place(&error, arguments, end), reason(&error))),
        }
    }
}

/// A line with some of its commas is read as a plain one, which it was hardly meant to be.
fn about_commas(mut error: LineError, line: &Line) -> LineError {
    if matches!(&line.words, Words::Plain(words) if words.iter().any(|word| word.bytes.ends_with(b","))) {
        error.message.push_str("; in a line with commas, one stands behind every word but the last");
    }
    error
}

const HOW_LINES_ARE_WRITTEN: &str = "
A line is written in the original's form, or as on the command line:
  create 'q1', 32, 86400, {'hbase.hqueue.partitionsPerRegion' => '4'}
  create q1 --partitions 32 --ttl 86400 --set hbase.hqueue.partitionsPerRegion=4
Quotes may be straight or curly. In double quotes there are escapes, those that scan prints: \\n \\t \\r \\\\ \\xff \\u{200b}.
A line that begins with # is a comment. help COMMAND shows more of one command.
";

/// Defaults of a line's flags.
fn inherit(arg: clap::Arg, connection: &Connection) -> clap::Arg {
    match arg.get_id().as_str() {
        "connect" => arg.env(None).default_value(connection.connect.clone()).hide(true),
        "zookeeper_auth" => arg.env(None).hide(true),
        "format" => arg.default_value(match connection.format {
            Format::Text => "text",
            Format::Json => "json",
        }),
        // The shell does not ask, as the original's did not.
        "yes" => arg.default_value("true").hide(true),
        _ => arg,
    }
}

fn entry(name: &Word) -> Result<&'static Entry, LineError> {
    let text = name.text();
    let known = match text.as_str() {
        "quit" => Some("exit"),
        other => Some(other),
    };
    match known.and_then(table::find) {
        Some(entry) if entry.in_shell() => Ok(entry),
        Some(entry) => {
            let message =
                format!("{} is no command of the shell; on the command line it is hqueue {}", entry.name, entry.example);
            Err(LineError::new(name.at.clone(), message))
        }
        None => {
            let names = ENTRIES.iter().filter(|entry| entry.in_shell()).map(|entry| entry.name);
            let nearest = nearest(&text, names).unwrap_or_default();
            Err(LineError::new(name.at.clone(), format!("there is no command {text}; the nearest known one is {nearest}")))
        }
    }
}

fn words(line: &Line) -> Vec<&Word> {
    match &line.words {
        Words::Plain(words) => words.iter().collect(),
        Words::Original { words, dictionary } => {
            words.iter().chain(dictionary.iter().flat_map(|d| &d.pairs).map(|(key, _)| key)).collect()
        }
    }
}

/// Which word an error is about: the one that it names, else the end, where something is missing.
fn place(error: &clap::Error, arguments: &[Argument], end: usize) -> Range<usize> {
    let named = [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let named = named.into_iter().filter_map(|kind| match error.get(kind) {
        Some(ContextValue::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    });
    let missing = error.kind() == ErrorKind::MissingRequiredArgument;
    let mut named = named.filter(|_| !missing);
    named.find_map(|text| arguments.iter().rev().find(|argument| is_named(argument, text))).map_or(end..end, |a| a.at.clone())
}

/// A flag is named as `--partitions <N>`.
fn is_named(argument: &Argument, text: &str) -> bool {
    let word = argument.text.to_string_lossy();
    let flag = text.split([' ', '=']).next().filter(|flag| flag.starts_with('-'));
    word == text
        || word.strip_prefix("--").and_then(|flag| flag.split_once('=')).is_some_and(|(_, value)| value == text)
        || flag.is_some_and(|flag| word == flag || word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
}

/// What clap says, without its usage and hints about `--help`.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|tail| text.find(tail)).min();
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).trim_end().to_owned()
}
