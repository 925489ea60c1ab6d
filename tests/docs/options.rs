//! The table in `docs/options.md` is made of what the program says: the help of `add_subscriber` has effect and default, the refusal of a wrong value has the
//! limits. `HQUEUE_WRITE_DOCS=1 cargo test -p hqueue-tests --test docs options` writes it anew.

use std::fmt::Write;
use std::fs;

use hqueue_tests::{Broker, run};

use crate::document::{Document, root};

const BEGIN: &str = "<!-- made by tests/docs/options.rs: begin -->\n";
const END: &str = "<!-- made by tests/docs/options.rs: end -->\n";

/// Flags of `add_subscriber` that say what is subscribed to, not how it is served.
const NO_OPTIONS: [&str; 8] = ["address", "topic", "partition", "from", "connect", "zookeeper-auth", "format", "help"];

#[test]
fn the_table_of_options_is_fresh() {
    let document = Document::read("docs/options.md");
    let (before, rest) = document.text.split_once(BEGIN).expect("where the table begins");
    let (_, behind) = rest.split_once(END).expect("where it ends");
    let fresh = format!("{before}{BEGIN}\n{}\n{END}{behind}", table());
    if std::env::var_os("HQUEUE_WRITE_DOCS").is_some() {
        fs::write(root().join("docs/options.md"), fresh).unwrap();
        return;
    }
    assert!(
        fresh == document.text,
        "docs/options.md is not fresh: HQUEUE_WRITE_DOCS=1 cargo test -p hqueue-tests --test docs options"
    );
}

fn table() -> String {
    let broker = Broker::start();
    broker.create("q", 1);
    let help = run(["add_subscriber", "--help"], b"");
    let options = options(help.text());
    assert!(options.len() >= 17, "{options:?}");
    let mut table = "| option | effect | default | values |\n|---|---|---|---|\n".to_owned();
    for Described { name, effect, default, choices } in options {
        let values = if choices.is_empty() { limits(&broker, &name) } else { choices };
        let _ = writeln!(table, "| `--{name}` | {effect} | `{default}` | {values} |");
    }
    table
}

#[derive(Debug, Default)]
struct Described {
    name: String,
    effect: String,
    default: String,
    choices: String,
}

/// What stands in the help: `--name VALUE`, then the effect with `[default: …]` and `[possible values: …]` on the lines below.
fn options(help: &str) -> Vec<Described> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in help.lines().skip_while(|line| !line.starts_with("Options")) {
        let line = line.trim();
        if line == "Example:" {
            break;
        }
        let flag = line.split_whitespace().find_map(|word| word.strip_prefix("--")).filter(|_| line.starts_with('-'));
        match (flag, found.last_mut()) {
            (Some(flag), _) if !line.starts_with("- ") => found.push((flag.to_owned(), String::new())),
            (_, Some((_, text))) => {
                text.push_str(line);
                text.push(' ');
            }
            _ => {}
        }
    }
    found.retain(|(name, _)| !NO_OPTIONS.contains(&name.as_str()));
    found.into_iter().map(|(name, text)| described(name, &text)).collect()
}

fn described(name: String, text: &str) -> Described {
    let bracket =
        |what: &str| text.split_once(what).and_then(|(_, rest)| rest.split_once(']')).map(|(inner, _)| inner.trim().to_owned());
    let effect = text.split('[').next().unwrap_or_default().trim().to_owned();
    let choices = bracket("[possible values:").unwrap_or_default();
    Described { name, effect, default: bracket("[default:").unwrap_or_default(), choices }
}

/// What is said of a value that cannot be.
fn limits(broker: &Broker, name: &str) -> String {
    let done = broker.run(&["add_subscriber", "q", "s", &format!("--{name}"), "?"]);
    assert_ne!(done.code, Some(0), "{done}");
    let line = done.err.lines().next().unwrap_or_default();
    let (_, wanted) = line.split_once("': ").unwrap_or_else(|| panic!("{name}: {line}"));
    // How a length of time is written is said once, below the table.
    let wanted = wanted.split(": ").next().unwrap_or_default();
    wanted.trim_start_matches("it is ").to_owned()
}
