//! What a process has used of the machine, from `/proc`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::failure::{Doing, Failure, Outcome};

/// Since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user and in kernel mode, all threads. Resolution 10 ms.
    pub cpu: Duration,
    /// The same as the scheduler counts it, in nanoseconds, but only of threads that live now: for what does next to nothing.
    pub ran: Duration,
    /// How often a thread gave up a core because it had nothing to do, in all threads that live now: each is a wake-up.
    pub sleeps: u64,
    /// In memory now, without files that are only cached.
    pub resident_bytes: u64,
    /// Read from the disk, and written to it or to be written to it.
    pub disk_read_bytes: u64,
    pub disk_written_bytes: u64,
}

impl Usage {
    pub fn of(pid: u32) -> Outcome<Self> {
        let folder = Path::new("/proc").join(pid.to_string());
        let read = |name: &str| fs::read_to_string(folder.join(name)).doing(|| format!("reading {name} of process {pid}"));
        let bad = |name: &str| Failure::Side(format!("{name} of process {pid} has another form"));
        let io = read("io")?;
        let status = read("status")?;
        Ok(Self {
            cpu: cpu(&read("stat")?).ok_or_else(|| bad("stat"))?,
            ran: ran(&folder)?,
            sleeps: sleeps(&folder)?,
            resident_bytes: field(&status, "VmRSS:").ok_or_else(|| bad("status"))? * 1024,
            disk_read_bytes: field(&io, "read_bytes:").ok_or_else(|| bad("io"))?,
            disk_written_bytes: field(&io, "write_bytes:").ok_or_else(|| bad("io"))?,
        })
    }

    /// The process and all that it has started.
    pub fn of_tree(pid: u32) -> Outcome<Self> {
        let mut all = Self::of(pid)?;
        for child in descendants(pid) {
            // One that has ended meanwhile has nothing to say.
            all = Self::of(child).map_or(all, |used| all.and(used));
        }
        Ok(all)
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            ran: self.ran + other.ran,
            sleeps: self.sleeps + other.sleeps,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            disk_read_bytes: self.disk_read_bytes + other.disk_read_bytes,
            disk_written_bytes: self.disk_written_bytes + other.disk_written_bytes,
        }
    }

    /// What was used since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            ran: self.ran.saturating_sub(before.ran),
            sleeps: self.sleeps.saturating_sub(before.sleeps),
            resident_bytes: self.resident_bytes,
            disk_read_bytes: self.disk_read_bytes.saturating_sub(before.disk_read_bytes),
            disk_written_bytes: self.disk_written_bytes.saturating_sub(before.disk_written_bytes),
        }
    }
}

/// The children of a process, and theirs.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> = processes.filter_map(|child| Some((child, parent(child)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, own)| *own == parent).map(|(child, _)| *child));
        next += 1;
    }
    found.split_off(1)
}

/// Field 4 of `stat`.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// How long all cores together were busy since the machine began, with anything.
pub fn machine_busy() -> Outcome<Duration> {
    let stat = fs::read_to_string("/proc/stat").doing(|| "reading /proc/stat".to_owned())?;
    let bad = || Failure::Side("/proc/stat has another form".to_owned());
    let line = stat.lines().next().ok_or_else(bad)?;
    let numbers: Vec<u64> = line.split_ascii_whitespace().skip(1).map_while(|number| number.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let [user, nice, system, _, _, irq, softirq, steal] = *numbers.first_chunk().ok_or_else(bad)?;
    ticks(user + nice + system + irq + softirq + steal).ok_or_else(bad)
}

fn ticks(count: u64) -> Option<Duration> {
    let a_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(count.checked_mul(1000)?.checked_div(a_second)?))
}

/// Fields 14 and 15 of `stat`, behind the program's name in brackets, which may hold spaces.
fn cpu(stat: &str) -> Option<Duration> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    ticks(user + kernel)
}

fn sleeps(folder: &Path) -> Outcome<u64> {
    let of_thread = |text: &str| field(text, "voluntary_ctxt_switches:");
    of_threads(folder, "status", of_thread)
}

/// The first number of `schedstat`, in nanoseconds.
fn ran(folder: &Path) -> Outcome<Duration> {
    let of_thread = |text: &str| text.split_ascii_whitespace().next()?.parse().ok();
    of_threads(folder, "schedstat", of_thread).map(Duration::from_nanos)
}

/// The sum of what a file of each thread says.
fn of_threads(folder: &Path, file: &str, number: impl Fn(&str) -> Option<u64>) -> Outcome<u64> {
    let tasks = folder.join("task");
    let mut sum = 0;
    for thread in fs::read_dir(&tasks).doing(|| format!("listing {}", tasks.display()))? {
        let thread = thread.doing(|| format!("listing {}", tasks.display()))?;
        // A thread may end between the two.
        let text = fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        sum += number(&text).unwrap_or(0);
    }
    Ok(sum)
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident_bytes > 100_000, "{usage:?}");
        assert!(usage.ran > Duration::ZERO, "{usage:?}");
    }

    #[test]
    fn a_child_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = descendants(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
    }

    #[test]
    fn a_name_with_brackets_does_not_confuse() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 1 1";
        let tick = 1000 / rustix::param::clock_ticks_per_second();
        assert_eq!(cpu(stat), Some(Duration::from_millis(300 * tick)));
    }
}
