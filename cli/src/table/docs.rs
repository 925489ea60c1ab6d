//! `docs/commands.md`, made of the table and of what clap knows.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use super::help::about;
use super::{ENTRIES, Entry, Group, Scope, command_line};

const HEAD: &str = "# Commands

Made from `cli/src/table/` and the commands' own descriptions by `HQUEUE_WRITE_DOCS=1 cargo test -p hqueue-cli docs`; a test keeps it fresh.

Every command stands on the command line (`hqueue list`) and, but for those that are marked, as a line of `hqueue shell`. There it is written
as on the command line, without `hqueue`, or in the form of the original HQueue: words with commas between them, and a dictionary at the end.
Text stands in straight or curly quotes. Where the dictionary holds flags, `'topics' => 'a,b'` is `--topic a --topic b`.

Exit codes:

| | |
|---|---|
| 0 | done |
| 1 | refused by a broker (there is no such queue, it exists, it is disabled, a partition is offline), or failed (no broker there, a file that cannot be read); also for a line of `hqueue shell`, whatever is wrong with it |
| 2 | wrong usage, seen before a broker was asked: an unknown command or flag, a flag that is missing or given twice, a name or a value outside its limits, flags that do not go together, a missing `--yes` |

";

/// The whole page.
pub(super) fn page() -> String {
    let mut clap = command_line();
    clap.build();
    let mut text = HEAD.to_owned();
    let list = clap.find_subcommand("list").map(Command::get_opts).into_iter().flatten();
    text.push_str("Commands that talk to a broker have these flags:\n\n");
    list.for_each(|flag| option(&mut text, flag));
    for group in Group::ALL {
        let _ = write!(text, "\n## {}\n", group.title());
        ENTRIES.iter().filter(|entry| entry.group == group).for_each(|entry| section(&mut text, &clap, entry));
    }
    text
}

fn section(text: &mut String, clap: &Command, entry: &Entry) {
    let _ = write!(text, "\n### {}\n\n{}.", entry.name, about(clap, entry));
    text.push_str(match entry.scope {
        Scope::Everywhere => "\n",
        Scope::CommandLine => " Not in the shell.\n",
        Scope::Shell(_) => " Only in the shell.\n",
    });
    let Some(command) = clap.find_subcommand(entry.name) else {
        let _ = write!(text, "\n```\n{}\n```\n", entry.example);
        return;
    };
    if let Some(long) = command.get_long_about().map(ToString::to_string) {
        // Its first paragraph is the description.
        if let Some((_, more)) = long.split_once("\n\n") {
            let _ = write!(text, "\n{more}\n");
        }
    }
    let yes = if entry.destroys { " --yes" } else { "" };
    let _ = write!(text, "\n```\nhqueue {}{yes}\n", entry.example);
    if let Some(signature) = entry.signature().filter(|_| entry.original_example != entry.example) {
        let _ = write!(text, "\n{signature}\n{}\n", entry.original_example);
    }
    text.push_str("```\n");
    // A name that is its own explanation needs none.
    let own: Vec<&Arg> =
        command.get_arguments().filter(|arg| !is_common(arg) && (arg.get_help().is_some() || !arg.is_positional())).collect();
    if !own.is_empty() {
        text.push('\n');
    }
    own.into_iter().for_each(|arg| option(text, arg));
}

fn is_common(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "connect" | "zookeeper_auth" | "format" | "help" | "version")
}

fn option(text: &mut String, arg: &Arg) {
    let value = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default();
    let name = match arg.get_long() {
        Some(long) if matches!(arg.get_action(), ArgAction::SetTrue) => format!("--{long}"),
        Some(long) => format!("--{long} {value}"),
        None => value,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let choices: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let _ = write!(text, "- `{name}`");
    let _ = if help.is_empty() { Ok(()) } else { write!(text, ": {help}") };
    if !choices.is_empty() && !matches!(arg.get_action(), ArgAction::SetTrue) {
        let _ = write!(text, " ({})", choices.join(", "));
    }
    if !default.is_empty() && !matches!(arg.get_action(), ArgAction::SetTrue) {
        let _ = write!(text, " [default: {}]", default.join(", "));
    }
    text.push('\n');
}
