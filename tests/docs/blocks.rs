//! The blocks of code of a document, and what is done with each.
//!
//! | fence | is run as |
//! |---|---|
//! | `sh` | a script of bash; it has to succeed |
//! | `console` | the lines behind `$ `, one after the other; the other lines are what they print |
//! | `hqueue` | lines of `hqueue shell` |
//! | others | not at all; then it may hold no command |
//!
//! A comment on the line above a fence says otherwise: `<!-- not run: WHY -->`; `<!-- goes on -->`: it runs until the end of the document, and ends with exit code 0
//! when it is told to; `<!-- exit N -->`: its exit code. Alone on a line, `<!-- run: COMMAND -->` is run and not shown, and `<!-- what goes on ends -->` ends it.

use crate::document::Document;

/// One step through a document.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Script {
        text: String,
        code: i32,
    },
    /// Commands, each with what it prints.
    Console {
        commands: Vec<(String, Vec<String>)>,
        code: i32,
    },
    Shell {
        text: String,
        code: i32,
    },
    GoesOn {
        text: String,
    },
    AllEnd,
}

/// Everything that is to be run, in order.
pub(crate) fn steps(document: &Document) -> Vec<Step> {
    let lines: Vec<&str> = document.text.lines().collect();
    let mut steps = Vec::new();
    let (mut at, mut mark) = (0, None);
    while at < lines.len() {
        let (line, text) = (at + 1, lines[at].trim());
        at += 1;
        if let Some(comment) = text.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")) {
            match comment.trim() {
                "what goes on ends" => steps.push(Step { line, what: What::AllEnd }),
                other => match other.strip_prefix("run:") {
                    Some(command) => {
                        steps.push(Step { line, what: What::Script { text: command.trim().to_owned(), code: 0 } });
                    }
                    None => mark = Some(other),
                },
            }
            continue;
        }
        let Some(info) = text.strip_prefix("```") else {
            mark = None;
            continue;
        };
        let length = lines[at..]
            .iter()
            .position(|line| line.trim() == "```")
            .unwrap_or_else(|| panic!("{}:{line}: no end", document.name));
        let block = &lines[at..at + length];
        at += length + 1;
        if let Some(what) = what(&format!("{}:{line}", document.name), info, mark.take(), block) {
            steps.push(Step { line, what });
        }
    }
    steps
}

fn what(place: &str, info: &str, mark: Option<&str>, block: &[&str]) -> Option<What> {
    let text = block.join("\n");
    let code = match mark {
        None => 0,
        Some("goes on") => {
            assert_eq!(info, "sh", "{place}: what goes on is a script");
            return Some(What::GoesOn { text });
        }
        Some(mark) => {
            if let Some(reason) = mark.strip_prefix("not run:") {
                assert!(reason.trim().len() > 10, "{place}: why is it not run?");
                return None;
            }
            let code = mark.strip_prefix("exit ").unwrap_or_else(|| panic!("{place}: what is {mark:?}?"));
            code.parse().unwrap_or_else(|_| panic!("{place}: {code:?} is no exit code"))
        }
    };
    match info {
        "sh" => Some(What::Script { text, code }),
        "console" => Some(What::Console { commands: commands(place, block), code }),
        "hqueue" => Some(What::Shell { text, code }),
        "" => panic!("{place}: say what it is: sh, console, hqueue, text, ..."),
        _ => {
            let is_command = |line: &&&str| line.starts_with("hqueue ") || line.starts_with("$ ");
            assert_eq!(block.iter().find(is_command), None, "{place}: commands stand in sh or console, where they are run");
            None
        }
    }
}

fn commands(place: &str, block: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, output))) => output.push((*line).to_owned()),
            (None, None) => panic!("{place}: a block of console begins with a command behind $"),
        }
    }
    commands
}

/// Whether something is printed as the document says. Numbers may differ, and widths of columns; a line `…` stands for any lines.
pub(crate) fn is_as_said(said: &[String], printed: &str) -> bool {
    let said: Vec<String> = said.iter().map(|line| plain(line)).collect();
    let printed: Vec<String> = printed.lines().map(plain).collect();
    fits(&said, &printed)
}

fn fits(said: &[String], printed: &[String]) -> bool {
    match said.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "…" => (0..=printed.len()).any(|skipped| fits(rest, &printed[skipped..])),
        Some((first, rest)) => printed.split_first().is_some_and(|(line, more)| line == first && fits(rest, more)),
    }
}

/// The line without its numbers and the names that are made by chance.
fn plain(line: &str) -> String {
    let mut text = String::new();
    for word in line.split_whitespace() {
        let word = match word.split_once("broker-") {
            Some((before, behind)) => format!("{before}broker-{}", behind.trim_start_matches(|c: char| c.is_ascii_hexdigit())),
            None => word.to_owned(),
        };
        if !text.is_empty() {
            text.push(' ');
        }
        let mut in_number = false;
        for c in word.chars() {
            match c.is_ascii_digit() {
                true if in_number => {}
                true => text.push('#'),
                false => text.push(c),
            }
            in_number = c.is_ascii_digit();
        }
    }
    text
}

#[test]
fn what_is_printed_may_differ_in_numbers_only() {
    let said = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_as_said(&said("3  1700000000000:0"), "12\t1800000000000:17\n"));
    assert!(is_as_said(&said("a\n…\nz"), "a\nb\nc\nz\n") && is_as_said(&said("a\n…"), "a\n"));
    assert!(!is_as_said(&said("a\n…\nz"), "a\nb\n"));
    assert!(!is_as_said(&said("online"), "offline\n") && !is_as_said(&said(""), "more\n"));
    assert!(is_as_said(&said("broker-7d9f2c1e  online"), "broker-aaaaaaaa online"));
}
