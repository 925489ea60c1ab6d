//! The table of commands. The command line, the shell, their help, their completion and `docs/commands.md` are made from it.

#[cfg(test)]
mod docs;
mod entries;
mod help;
#[cfg(test)]
mod tests;

pub(crate) use self::entries::ENTRIES;
pub(crate) use self::help::{command_line, has_action, help_words, in_shell, overview};

use std::fmt::Write;

/// One command.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    pub(crate) scope: Scope,
    /// The original's form: words with commas between them, and perhaps a dictionary.
    pub(crate) original: Option<Original>,
    /// An example in the original's form.
    pub(crate) original_example: &'static str,
    /// The same as on the command line, without `hqueue` and `--yes`.
    pub(crate) example: &'static str,
    /// It can destroy something: on the command line it wants a yes, or `--yes`.
    pub(crate) destroys: bool,
}

/// Under which heading a command stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Queues,
    Messages,
    Subscribers,
    Brokers,
    Shell,
}

impl Group {
    pub(crate) const ALL: [Self; 5] = [Self::Queues, Self::Messages, Self::Subscribers, Self::Brokers, Self::Shell];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Queues => "Queues",
            Self::Messages => "Messages",
            Self::Subscribers => "Subscribers",
            Self::Brokers => "Brokers",
            Self::Shell => "The shell",
        }
    }
}

/// Where a command can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everywhere,
    CommandLine,
    /// Only in the shell, which carries it out itself; with what it does.
    Shell(&'static str),
}

/// What a command takes in the original's form.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) words: &'static [Word],
    pub(crate) dictionary: Dictionary,
}

/// A word of the original's form.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The flag that it becomes; without one it keeps its place.
    pub(crate) flag: Option<&'static str>,
    pub(crate) optional: bool,
}

/// What a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Queue,
    Subscriber,
    /// Text, which stands in quotes.
    Text,
    /// A message's value: it may begin with a dash.
    Value,
    /// A number or a position, which needs no quotes.
    Bare,
}

/// What the dictionary of the original's form is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dictionary {
    None,
    /// Settings: each is a `--set`.
    Settings,
    /// Flags: each key is one.
    Flags,
}

pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

impl Entry {
    pub(crate) const fn in_shell(&self) -> bool {
        !matches!(self.scope, Scope::CommandLine)
    }

    pub(crate) const fn on_command_line(&self) -> bool {
        !matches!(self.scope, Scope::Shell(_))
    }

    /// `seek 'QUEUE', 'SUBSCRIBER', POSITION[, PARTITION]`
    pub(crate) fn signature(&self) -> Option<String> {
        let original = self.original.as_ref()?;
        let mut text = self.name.to_owned();
        let mut comma = "";
        for word in original.words {
            let (open, close) = if word.optional { ("[", "]") } else { ("", "") };
            let quote = if word.kind == Kind::Bare { "" } else { "'" };
            let space = if comma.is_empty() { " " } else { "" };
            let _ = write!(text, "{space}{open}{comma}{quote}{}{quote}{close}", word.name);
            comma = ", ";
        }
        text.push_str(match original.dictionary {
            Dictionary::None => "",
            Dictionary::Settings => "[, {'KEY' => 'VALUE', …}]",
            Dictionary::Flags => "[, {'FLAG' => 'VALUE', …}]",
        });
        Some(text)
    }
}
