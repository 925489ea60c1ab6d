//! Real text: the project's own sources.

use std::fs;
use std::path::{Path, PathBuf};

/// The lines of the files of this workspace, a list for each file: blank lines, long lines, tabs and all.
///
/// # Panics
/// If they cannot be read.
#[must_use]
pub fn files_of_lines() -> Vec<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder");
    let mut paths = Vec::new();
    collect(root, &mut paths);
    paths.sort();
    let lines = |path: &PathBuf| fs::read_to_string(path).expect("a text").lines().map(str::to_owned).collect();
    paths.iter().map(lines).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            collect(&path, paths);
        } else if path.is_file() && [".rs", ".md", ".thrift", ".toml"].iter().any(|end| name.ends_with(end)) {
            paths.push(path);
        }
    }
}
