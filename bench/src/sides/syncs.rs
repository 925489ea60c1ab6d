//! Counts the calls with which processes have their data synced, from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::{Doing, Failure, Outcome};

/// Everything by which Linux syncs on demand.
const CALLS: &str = "trace=fsync,fdatasync,msync,sync_file_range,syncfs,sync";
const PATIENCE: Duration = Duration::from_secs(60);
/// A file that was opened with one of these is synced by each write: `O_DSYNC`, which `O_SYNC` contains.
const DSYNC: u32 = 0o10000;

/// `strace`, attached to all threads of some processes.
#[derive(Debug)]
pub struct SyncCount {
    tracer: Child,
    summary: PathBuf,
}

impl SyncCount {
    /// Attaches; what the processes do from now on counts.
    pub async fn attach(ids: &[u32], folder: &Path) -> Outcome<Self> {
        let (summary, said) = (folder.join("syncs"), folder.join("strace.out"));
        let output = fs::File::create(&said).doing(|| format!("making {}", said.display()))?;
        let mut command = Command::new("strace");
        command.args(["-f", "-c", "-U", "name,calls", "-e", CALLS, "-o"]).arg(&summary);
        for id in ids {
            command.args(["-p", &id.to_string()]);
        }
        let tracer = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).spawn();
        let mut count = Self { tracer: tracer.doing(|| "starting strace".to_owned())?, summary };
        let deadline = Instant::now() + PATIENCE;
        while !ids.iter().all(|id| is_traced(*id, count.tracer.id())) {
            let ended = count.tracer.try_wait().doing(|| "waiting for strace".to_owned())?.is_some();
            if ended || Instant::now() > deadline {
                let said = fs::read_to_string(&said).unwrap_or_default();
                return Err(Failure::Side(format!("strace cannot attach, which takes root or a relaxed ptrace_scope: {said}")));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(count)
    }

    /// Detaches; how many calls there were.
    pub fn detach(mut self) -> Outcome<u64> {
        let id = i32::try_from(self.tracer.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| Failure::Side("strace without an id".to_owned()))?;
        kill_process(id, Signal::INT).map_err(std::io::Error::from).doing(|| "stopping strace".to_owned())?;
        self.tracer.wait().doing(|| "waiting for strace".to_owned())?;
        let text = fs::read_to_string(&self.summary).doing(|| format!("reading {}", self.summary.display()))?;
        Ok(calls(&text))
    }
}

impl Drop for SyncCount {
    /// A tracer that is killed lets go of what it traced.
    fn drop(&mut self) {
        if self.tracer.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.tracer.kill();
            let _ = self.tracer.wait();
        }
    }
}

/// In all its threads: they are attached to one after the other.
fn is_traced(id: u32, tracer: u32) -> bool {
    let threads = fs::read_dir(Path::new("/proc").join(id.to_string()).join("task"));
    let tracer_of = |thread: PathBuf| {
        let status = fs::read_to_string(thread.join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse::<u32>().ok()
    };
    // A thread that has ended meanwhile has no status, and makes no calls.
    threads.is_ok_and(|mut threads| {
        threads.all(|thread| thread.is_ok_and(|thread| tracer_of(thread.path()).is_none_or(|own| own == tracer)))
    })
}

/// The sum over the lines `name calls`.
fn calls(summary: &str) -> u64 {
    let lines = summary.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let calls = lines.filter_map(|fields| match *fields.as_slice() {
        [name, calls] if name != "total" => calls.parse::<u64>().ok(),
        _ => None,
    });
    calls.sum()
}

/// How many files the processes have open whose writes are all synced: those are not seen among the calls.
#[must_use]
pub fn files_synced_by_writes(ids: &[u32]) -> usize {
    let infos =
        ids.iter().flat_map(|id| fs::read_dir(Path::new("/proc").join(id.to_string()).join("fdinfo")).into_iter().flatten());
    let flags = infos.filter_map(|info| {
        let text = fs::read_to_string(info.ok()?.path()).ok()?;
        u32::from_str_radix(text.lines().find_map(|line| line.strip_prefix("flags:"))?.trim(), 8).ok()
    });
    flags.filter(|flags| flags & DSYNC != 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_added_up() {
        let text = "syscall            calls\n---------------- ---------\nfdatasync              31\nfsync                   2\n\
                    ---------------- ---------\ntotal                  33\n";
        assert_eq!(calls(text), 33);
        assert_eq!(calls(""), 0);
    }
}
