//! On what it was measured.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::sides::{Places, version_of};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub cores: usize,
    pub processor: String,
    pub memory: String,
    pub kernel: String,
    /// File system type of the data folder's mount.
    pub file_system: String,
    pub hqueue: String,
}

impl Machine {
    #[must_use]
    pub fn look(places: &Places) -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: line("/proc/cpuinfo", "model name"),
            memory: line("/proc/meminfo", "MemTotal"),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            file_system: file_system(places),
            hqueue: version_of(&places.hqueue).unwrap_or_else(|failure| failure.to_string()),
        }
    }
}

/// What stands behind the colon of the first line that begins so.
fn line(path: &str, begins: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(begins)).and_then(|line| line.split_once(':'));
    line.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

/// The type of the mount with the longest path above the data.
fn file_system(places: &Places) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = mounts.filter(|(path, _)| places.data.starts_with(path));
    above.max_by_key(|(path, _)| path.len()).map(|(_, kind)| kind.to_owned()).unwrap_or_default()
}
