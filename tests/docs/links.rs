//! Links within the documents lead somewhere.

use crate::document::{Document, root};

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    for document in Document::all() {
        for target in document.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
            let folder = root().join(&document.name).parent().unwrap().to_owned();
            let path = if file.is_empty() { root().join(&document.name) } else { folder.join(file) };
            let is_there = path.exists() && heading.is_none_or(|heading| headings(&path).contains(&heading.to_owned()));
            if !is_there {
                wrong.push(format!("{}: {target}", document.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// As forges name them.
fn headings(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let name = |line: &str| -> String {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    text.lines().filter(|line| line.starts_with('#')).map(name).collect()
}

/// The table of contents has every document.
#[test]
fn no_document_is_missing_in_the_table_of_contents() {
    let contents = Document::read("docs/README.md").text;
    for document in Document::all() {
        if let Some(file) = document.name.strip_prefix("docs/").filter(|file| *file != "README.md") {
            assert!(contents.contains(&format!("]({file})")), "docs/README.md does not name {file}");
        }
    }
}
