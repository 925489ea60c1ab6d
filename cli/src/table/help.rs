//! What clap is told by the table: the groups of the help, and an example for each command.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::{ENTRIES, Entry, Group, Scope, find};
use crate::command::Arguments;

/// The command line.
pub(crate) fn command_line() -> Command {
    let plain = Arguments::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\nOptions:\n{{options}}{{after-help}}",
        overview(&plain, Entry::on_command_line)
    );
    plain.help_template(template).mut_subcommands(|command| match find(command.get_name()) {
        Some(entry) => {
            let examples = examples_of_command_line(entry);
            command.after_help(examples)
        }
        None => command,
    })
}

/// The same commands as lines of the shell.
pub(crate) fn in_shell() -> Command {
    let shell = Arguments::command().multicall(true).disable_help_subcommand(true);
    shell.mut_subcommands(|command| match find(command.get_name()) {
        Some(entry) => {
            let template = template_of_shell(entry);
            command.help_template(template)
        }
        None => command,
    })
}

/// `hqueue help dlq redrive` is `hqueue help dlq`, whose help has a line for each action; so for every command whose first word is one of a few.
pub(crate) fn help_words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if let [_, help, name, action] = words.as_slice()
        && help == "help"
        && has_action(&Arguments::command(), name, action)
    {
        words.pop();
    }
    words
}

/// Whether this word can be the first behind the command.
pub(crate) fn has_action(clap: &Command, name: &OsStr, action: &OsStr) -> bool {
    let first = clap.get_subcommands().find(|command| command.get_name() == name).and_then(|c| c.get_positionals().next());
    first.is_some_and(|arg| arg.get_possible_values().iter().any(|value| value.get_name() == action))
}

/// The commands by groups, a line each.
pub(crate) fn overview(clap: &Command, shown: impl Fn(&Entry) -> bool) -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let entries: Vec<&Entry> = ENTRIES.iter().filter(|entry| entry.group == group && shown(entry)).collect();
        if entries.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}:", group.title());
        for entry in entries {
            let _ = writeln!(text, "  {:<19}{}", entry.name, about(clap, entry));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// What a command does, in a line.
pub(crate) fn about(clap: &Command, entry: &Entry) -> String {
    match entry.scope {
        Scope::Shell(about) => about.to_owned(),
        _ => clap.find_subcommand(entry.name).and_then(Command::get_about).map(ToString::to_string).unwrap_or_default(),
    }
}

fn examples_of_command_line(entry: &Entry) -> String {
    let yes = if entry.destroys { " --yes" } else { "" };
    let mut text = format!("Example:\n  hqueue {}{yes}", entry.example);
    if entry.original.is_some() {
        let _ = write!(text, "\n\nThe same in the shell:\n  {}", entry.original_example);
    }
    text
}

fn template_of_shell(entry: &Entry) -> String {
    let signature = entry.signature().map(|signature| format!("  {signature}\n")).unwrap_or_default();
    let same = if entry.original.is_some() { format!("  {}\n", entry.original_example) } else { String::new() };
    // Braces in a template that are no name of a part stay as they are.
    format!("{{about-with-newline}}\nUsage:\n{signature}  {{usage}}\n\nExample:\n{same}  {}\n\n{{all-args}}", entry.example)
}
