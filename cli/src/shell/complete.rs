//! What can stand where the cursor is.

use std::time::Duration;

use clap::Command;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::arguments::{flag_name, flags_of_dictionary};
use super::line::is_original;
use super::quotes::{closing, is_quote};
use super::scanner::{Bare, Scanner, Word};
use super::session::Session;
use crate::table::{self, ENTRIES, Entry, Kind};

/// How long somebody who pressed TAB waits for the broker.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where names of queues and subscribers come from.
pub(super) trait Source {
    fn queues(&self) -> Vec<String>;
    fn subscribers(&self, queue: &str) -> Vec<String>;
}

/// They come from the broker. If it does not answer soon, nothing is completed.
#[derive(Debug)]
pub(super) struct Names {
    session: Session,
    runtime: Handle,
}

impl Names {
    pub(super) const fn new(session: Session, runtime: Handle) -> Self {
        Self { session, runtime }
    }
}

impl Source for Names {
    fn queues(&self) -> Vec<String> {
        self.runtime.block_on(async {
            let asked = async { self.session.open().await.ok()?.admin().list_queues().await.ok() };
            let queues = timeout(PATIENCE, asked).await.ok().flatten().unwrap_or_default();
            queues.into_iter().map(|queue| queue.name).collect()
        })
    }

    fn subscribers(&self, queue: &str) -> Vec<String> {
        self.runtime.block_on(async {
            let asked = async { self.session.open().await.ok()?.admin().list_subscribers(queue).await.ok() };
            let subscribers = timeout(PATIENCE, asked).await.ok().flatten().unwrap_or_default();
            subscribers.into_iter().map(|subscriber| subscriber.name).collect()
        })
    }
}

/// What can stand at the end of this text: from which byte on it is replaced, and by what; each as it is shown and as it is written.
pub(super) fn candidates(clap: &Command, text: &str, names: &impl Source) -> (usize, Vec<(String, String)>) {
    let Some(place) = Place::of(text) else { return (text.len(), Vec::new()) };
    let known = place.known(clap, names);
    let fitting = known.into_iter().filter(|name| name.starts_with(place.begun));
    (place.start, fitting.map(|name| (name.clone(), place.written(&name))).collect())
}

/// The place of a word that is being written.
#[derive(Debug)]
struct Place<'a> {
    /// The words before it, the command first.
    words: Vec<Word>,
    original: bool,
    /// Within a dictionary: a key is next, or a value.
    dictionary: Option<Part>,
    start: usize,
    /// What is there of it, without its quote.
    begun: &'a str,
    quote: Option<char>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Key,
    Value,
}

impl<'a> Place<'a> {
    /// `None` where nothing can be completed.
    fn of(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let (mut words, mut original, mut dictionary) = (Vec::new(), false, None);
        loop {
            scanner.space().ok()?;
            if words.len() == 1 && !original {
                original = is_original(&scanner);
            }
            // The signs of the original's form.
            if original && !words.is_empty() {
                match scanner.peek() {
                    Some('{') => dictionary = Some(Part::Key),
                    Some('}') => return None,
                    Some(',') if dictionary.is_some() => dictionary = Some(Part::Key),
                    Some(',') => {}
                    Some('=') if scanner.rest().starts_with("=>") => {
                        scanner.bump();
                        dictionary = Some(Part::Value);
                    }
                    _ => {}
                }
                if matches!(scanner.peek(), Some('{' | ',' | '>')) {
                    scanner.bump();
                    continue;
                }
            }
            let start = scanner.at();
            let rest = scanner.rest();
            let quote = rest.chars().next().filter(|c| is_quote(*c));
            let bare = if original || words.is_empty() { Bare::Original } else { Bare::Plain };
            match scanner.word(bare) {
                // A word that is complete, with something behind it.
                Ok(word) if !scanner.rest().is_empty() && !word.at.is_empty() => words.push(word),
                // Behind a closed quote nothing is left to complete.
                Ok(_) if quote.is_some() || !scanner.rest().is_empty() => return None,
                Err(_) if quote.is_none() => return None,
                _ => {
                    let begun = quote.map_or(rest, |open| rest.get(open.len_utf8()..).unwrap_or_default());
                    return Some(Self { words, original, dictionary, start, begun, quote });
                }
            }
        }
    }

    fn known(&self, clap: &Command, names: &impl Source) -> Vec<String> {
        let Some(entry) = self.words.first().and_then(|name| table::find(&name.text())) else {
            return if self.words.is_empty() { commands() } else { Vec::new() };
        };
        if entry.name == "help" {
            return if self.words.len() == 1 { commands() } else { Vec::new() };
        }
        match self.dictionary {
            Some(Part::Key) => flags_of_dictionary(entry, clap).filter_map(|f| f.get_long().map(str::to_owned)).collect(),
            Some(Part::Value) => self.words.last().map(|key| values_of_flag(clap, entry, key)).unwrap_or_default(),
            None if self.original => self.by_place(entry, names),
            None => self.as_on_command_line(clap, entry, names),
        }
    }

    /// In the original's form.
    fn by_place(&self, entry: &Entry, names: &impl Source) -> Vec<String> {
        let words = entry.original.as_ref().map(|original| original.words).unwrap_or_default();
        match words.get(self.words.len() - 1).map(|word| word.kind) {
            Some(Kind::Queue) => names.queues(),
            Some(Kind::Subscriber) => self.words.get(1).map(|queue| names.subscribers(&queue.text())).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn as_on_command_line(&self, clap: &Command, entry: &Entry, names: &impl Source) -> Vec<String> {
        let Some(command) = clap.find_subcommand(entry.name) else { return Vec::new() };
        // --flag=value, in one word.
        if let Some((flag, _)) = self.begun.split_once('=').filter(|(flag, _)| self.quote.is_none() && flag.starts_with("--")) {
            let known = command.get_opts().find(|known| known.get_long() == flag.strip_prefix("--"));
            let values = known.map(clap::Arg::get_possible_values).unwrap_or_default();
            return values.iter().map(|value| format!("{flag}={}", value.get_name())).collect();
        }
        if self.quote.is_none() && self.begun.starts_with('-') {
            let flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
            return flags.filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
        }
        let takes_value = |word: &str| {
            let flag = word.strip_prefix("--")?;
            command.get_opts().find(|known| known.get_long() == Some(flag))
        };
        let mut places = Vec::new();
        let mut flag: Option<&clap::Arg> = None;
        for word in self.words.iter().skip(1).map(Word::text) {
            if flag.take().is_some() {
                continue;
            }
            flag = takes_value(&word);
            if flag.is_none() && !word.starts_with("--") {
                places.push(word);
            }
        }
        let wanted = flag.or_else(|| command.get_positionals().nth(places.len()));
        let queue = || {
            let at = command.get_positionals().position(|arg| arg.get_id() == "queue")?;
            places.get(at)
        };
        match wanted.map(|arg| (arg.get_id().as_str(), arg)) {
            Some(("queue", _)) => names.queues(),
            Some(("subscriber" | "name", _)) => queue().map(|queue| names.subscribers(queue)).unwrap_or_default(),
            Some((_, arg)) => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
            None => Vec::new(),
        }
    }

    fn written(&self, name: &str) -> String {
        match (self.quote, self.original) {
            (Some(open), _) => format!("{open}{name}{}", closing(open)),
            (None, true) => format!("'{name}'"),
            (None, false) => name.to_owned(),
        }
    }
}

fn commands() -> Vec<String> {
    ENTRIES.iter().filter(|entry| entry.in_shell()).map(|entry| entry.name.to_owned()).collect()
}

fn values_of_flag(clap: &Command, entry: &Entry, key: &Word) -> Vec<String> {
    let name = flag_name(key);
    let flag = flags_of_dictionary(entry, clap).find(|flag| flag.get_long() == Some(&name));
    flag.map(|flag| flag.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()).unwrap_or_default()
}
