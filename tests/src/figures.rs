//! What a process uses, from `/proc`.

use std::fs;
use std::path::PathBuf;

/// The resources of a process at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Resident memory.
    pub rss_bytes: u64,
    pub threads: u64,
    pub descriptors: u64,
    /// User and system time.
    pub cpu_millis: u64,
    /// Of all threads: how often one gave up the processor to wait.
    pub voluntary_switches: u64,
}

impl Figures {
    /// Of the process with this id.
    ///
    /// # Panics
    /// If it is gone.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let status = fs::read_to_string(process.join("status")).expect("the process lives");
        let stat = fs::read_to_string(process.join("stat")).expect("the process lives");
        // Behind the name in brackets, which may hold anything: state is field 3, utime 14, stime 15, in ticks of 10 ms.
        let fields: Vec<&str> = stat.rsplit_once(')').expect("stat has a name").1.split_whitespace().collect();
        let ticks: u64 = fields[11..=12].iter().map(|f| f.parse::<u64>().expect("ticks")).sum();
        Self {
            rss_bytes: field(&status, "VmRSS:") * 1024,
            threads: field(&status, "Threads:"),
            descriptors: fs::read_dir(process.join("fd")).expect("the process is ours").count() as u64,
            cpu_millis: ticks * 10,
            voluntary_switches: switches(&process),
        }
    }
}

fn switches(process: &std::path::Path) -> u64 {
    let threads = fs::read_dir(process.join("task")).expect("the process lives");
    // A thread may end while we look.
    let status = threads.filter_map(|t| fs::read_to_string(t.ok()?.path().join("status")).ok());
    status.map(|s| field(&s, "voluntary_ctxt_switches:")).sum()
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {status}"));
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no number behind {name}"))
}
