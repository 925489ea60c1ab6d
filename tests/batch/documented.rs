//! The tables of `docs/batch.md` name every setting and every counter.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

fn java(class: &str) -> String {
    read(&format!("clients/java/mapreduce/src/main/java/com/etao/hadoop/hbase/queue/mapreduce/{class}.java"))
}

/// What stands as code in the first cells of tables, and the second cell.
fn rows(document: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        rows.extend(cells[1].split(", ").map(|name| (name.trim_matches('`').to_owned(), cells[2].trim_matches('`').to_owned())));
    }
    rows
}

#[test]
fn every_setting_and_every_counter_is() {
    let rows = rows(&read("docs/batch.md"));
    let named =
        |is: &dyn Fn(&str) -> bool| rows.iter().map(|(name, _)| name.clone()).filter(|name| is(name)).collect::<BTreeSet<_>>();
    let source = java("HQueueConfiguration");
    let settings = source.lines().filter(|line| line.contains("public static final String"));
    let settings: BTreeSet<String> = settings.map(|line| line.split('"').nth(1).unwrap().to_owned()).collect();
    assert_eq!(named(&|name| name.starts_with("hqueue.")), settings);
    let source = java("HQueueCounter");
    let counters = source.lines().map(|line| line.trim().trim_end_matches(','));
    let is_name = |word: &str| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    assert_eq!(named(&is_name), counters.filter(|word| is_name(word)).map(str::to_owned).collect());
}
