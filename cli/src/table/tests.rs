//! The table has every command, and every command is everywhere.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};

use super::{ENTRIES, Entry, command_line, docs, find, in_shell, overview};
use crate::command::Arguments;

#[test]
fn the_table_has_the_commands_of_the_command_line() {
    let clap = Arguments::command();
    let known: BTreeSet<&str> = clap.get_subcommands().map(Command::get_name).collect();
    let listed: BTreeSet<&str> = ENTRIES.iter().filter(|entry| entry.on_command_line()).map(|entry| entry.name).collect();
    assert_eq!(known, listed);
    assert_eq!(ENTRIES.iter().map(|entry| entry.name).collect::<BTreeSet<_>>().len(), ENTRIES.len(), "none is there twice");
}

#[test]
fn a_command_destroys_exactly_if_it_wants_a_yes() {
    for command in Arguments::command().get_subcommands() {
        let wants_yes = command.get_arguments().any(|arg| arg.get_id() == "yes");
        assert_eq!(find(command.get_name()).unwrap().destroys, wants_yes, "{}", command.get_name());
    }
}

#[test]
fn the_flags_in_the_table_are_flags() {
    let clap = Arguments::command();
    for entry in ENTRIES {
        for flag in entry.original.iter().flat_map(|original| original.words).filter_map(|word| word.flag) {
            let known = clap.find_subcommand(entry.name).unwrap().get_arguments().any(|arg| arg.get_long() == Some(flag));
            assert!(known, "{} --{flag}", entry.name);
        }
    }
}

#[test]
fn every_command_is_in_both_overviews_and_explains_itself_with_an_example() {
    let overviews = [command_line().render_help().to_string(), overview(&in_shell(), Entry::in_shell)];
    for entry in ENTRIES {
        assert!(entry.example.split(' ').next() == Some(entry.name), "{}", entry.name);
        for (overview, there) in overviews.iter().zip([entry.on_command_line(), entry.in_shell()]) {
            let line =
                overview.lines().find(|line| line.trim_start().split(' ').next() == Some(entry.name) && line.starts_with("  "));
            assert_eq!(line.is_some(), there, "{} in {overview}", entry.name);
            assert!(!there || line.unwrap().trim().len() > entry.name.len() + 5, "{} has no description", entry.name);
        }
        for (mut clap, there) in [(command_line(), entry.on_command_line()), (in_shell(), entry.in_shell())] {
            let Some(command) = clap.find_subcommand_mut(entry.name).filter(|_| there) else { continue };
            // Lines are wrapped.
            let help = command.render_long_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(help.contains(entry.example) && help.contains(entry.original_example), "{help}");
        }
    }
}

#[test]
fn every_command_is_in_the_completions_of_every_shell() {
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command_line(), "hqueue", &mut script);
        let script = String::from_utf8(script).unwrap();
        for entry in ENTRIES.iter().filter(|entry| entry.on_command_line()) {
            assert!(script.contains(entry.name), "{} for {shell}", entry.name);
        }
    }
}

/// `HQUEUE_WRITE_DOCS=1 cargo test -p hqueue-cli docs` writes it anew.
#[test]
fn the_page_in_docs_is_fresh_and_has_every_command() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/commands.md");
    let page = docs::page();
    if std::env::var_os("HQUEUE_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, &page).unwrap();
    }
    for entry in ENTRIES {
        assert!(page.contains(&format!("\n### {}\n", entry.name)), "{}", entry.name);
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == page,
        "docs/commands.md is stale: HQUEUE_WRITE_DOCS=1 cargo test -p hqueue-cli docs"
    );
}
