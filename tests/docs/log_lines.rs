//! The log lines in `docs/operating.md` are those of the program.

use std::fs;
use std::path::Path;

use crate::document::{Document, root};

#[test]
fn every_log_line_to_alert_on_is_in_the_source() {
    let mut source = String::new();
    for folder in ["broker", "storage", "coordination", "hbase"] {
        read(&root().join(folder).join("src"), &mut source);
    }
    let operating = Document::read("docs/operating.md");
    let lines: Vec<Vec<String>> =
        operating.rows().into_iter().filter(|row| row.get(1).is_some_and(|level| level == "ERROR" || level == "WARN")).collect();
    assert!(lines.len() > 15, "{} lines", lines.len());
    for row in lines {
        for part in row[0].split('…').map(str::trim_end).filter(|part| !part.is_empty()) {
            assert!(source.contains(part), "{part:?} is in no source");
            let level = format!("tracing::{}!(", row[1].to_lowercase());
            let is_of_level = source.match_indices(part).any(|(at, _)| {
                let before = &source[..at];
                before.rfind("tracing::").is_some_and(|macro_at| before[macro_at..].starts_with(&level))
            });
            assert!(is_of_level, "{part:?} is not logged as {}", row[1]);
        }
    }
}

fn read(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}
