//! The documents: the README, and everything in `docs/`.

use std::fs;
use std::path::{Path, PathBuf};

/// Documents whose commands are not run from here, and who runs them.
const ELSEWHERE: [(&str, &str); 2] = [
    ("docs/commands.md", "it is made from the table of commands; its examples are those of --help, see help.rs"),
    ("docs/hbase.md", "it needs HBase: tests/hbase"),
];

pub(crate) struct Document {
    /// As it is called in messages: `docs/README.md`.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Document {
    pub(crate) fn read(name: &str) -> Self {
        let text = fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    pub(crate) fn all() -> Vec<Self> {
        let mut names = vec!["README.md".to_owned()];
        for entry in fs::read_dir(root().join("docs")).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            if file.ends_with(".md") {
                names.push(format!("docs/{file}"));
            }
        }
        names.sort();
        names.iter().map(|name| Self::read(name)).collect()
    }

    pub(crate) fn is_run_here(&self) -> bool {
        ELSEWHERE.iter().all(|(name, _)| *name != self.name)
    }

    /// The rows of all tables whose first cell is code: `| `name` | … |`. The cells, without the marks of code.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let cells = |line: &str| -> Vec<String> {
            let inner = line.trim_matches('|').replace("\\|", "\u{1}");
            inner.split('|').map(|cell| cell.trim().replace('\u{1}', "|").replace('`', "")).collect()
        };
        self.text.lines().filter(|line| line.starts_with("| `")).map(cells).collect()
    }
}

/// The folder of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
