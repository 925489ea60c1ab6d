//! Runs of the Java programs beside these tests.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use hqueue_tests::{Broker, wait};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::queues::Counts;

/// Longer than any job takes on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a cluster has to end by itself.
const TO_END: Duration = Duration::from_secs(60);

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("batch/run")
}

/// A program with all processes that it starts, in a folder of its own; both are gone with the value.
pub(crate) struct Program {
    child: Child,
    /// Until the drop. Its end tells a program with a cluster to end it.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// It starts processes that are in no group of ours.
    has_cluster: bool,
    folder: TempDir,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program in {}", self.folder.path().display())
    }
}

/// What a program has printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) is_good: bool,
    pub(crate) lines: Vec<String>,
    pub(crate) errors: String,
    folder: TempDir,
}

impl Program {
    /// Starts a class of `java/<kind>`; it is installed and built before. `{}` in a word is the program's own folder.
    pub(crate) fn start(kind: &str, class: &str, words: &[&str]) -> Self {
        let setup = Command::new(script()).args(["setup", kind]).stdin(Stdio::null()).output().expect("the script can be run");
        assert!(setup.status.success(), "setup {kind}: {}", String::from_utf8_lossy(&setup.stderr));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = folder.path().to_str().expect("a path in UTF-8");
        let errors = File::create(folder.path().join("errors")).expect("a file");
        let mut command = Command::new(script());
        command.args([kind, class]).args(words.iter().map(|word| word.replace("{}", here)));
        command.current_dir(folder.path()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        if class == "Measure" {
            // The others are over before the JIT's better half has begun.
            command.env("BATCH_TIER", "4");
        }
        let mut child = command.spawn().expect("the script can be run");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
        let input = child.stdin.take();
        Self { child, input, lines, has_cluster: kind == "cluster", folder }
    }

    /// A job with LocalJobRunner: `wordcount` or `copy` by this broker, with settings (`KEY=VALUE`).
    pub(crate) fn job(brokers: &str, settings: &[&str], words: &[&str]) -> Self {
        let mut all = vec!["-D", "hadoop.tmp.dir={}/tmp"];
        settings.iter().for_each(|setting| all.extend(["-D", setting]));
        let (job, words) = words.split_first().expect("the job's name");
        all.extend([job, brokers]);
        all.extend(words);
        Self::start("local", "Local", &all)
    }

    /// Waits until it prints this line; others before it are forgotten.
    pub(crate) fn wait_for_line(&self, wanted: &str) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line == wanted => return,
                Ok(_) => {}
                Err(error) => panic!("{wanted:?} is not printed: {error}\n{}", self.errors()),
            }
        }
    }

    /// It goes on behind a pause.
    pub(crate) fn go_on(&mut self) {
        self.input.as_mut().expect("it is open").write_all(b"\n").expect("it reads");
    }

    /// What it wrote to standard error.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.path().join("errors")).expect("a file")).into_owned()
    }

    pub(crate) fn end(mut self) -> Done {
        let mut status = None;
        wait("the program ends", PATIENCE, || {
            status = self.child.try_wait().expect("it is ours");
            status.is_some()
        });
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().expect("a temporary folder"));
        let errors = String::from_utf8_lossy(&fs::read(folder.path().join("errors")).expect("a file")).into_owned();
        Done { is_good: status.is_some_and(|s| s.success()), lines: self.lines.iter().collect(), errors, folder }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.has_cluster {
            drop(self.input.take());
            // Its output ends with it.
            let until = Instant::now() + TO_END;
            while self.lines.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Done {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert!(self.is_good, "{:?}\n{}", self.lines, self.errors);
        self
    }

    /// Lines that begin with this word, without it.
    pub(crate) fn lines_of(&self, word: &str) -> Vec<&str> {
        self.lines.iter().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).collect()
    }

    /// A counter of the job; 0 if it was never counted.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let find = |text: &str| text.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        self.lines_of("counter").into_iter().find_map(find).unwrap_or(0)
    }

    /// What a word count has written into its folder `{}/out`.
    pub(crate) fn counts(&self) -> Counts {
        counts(&fs::read_to_string(self.folder.path().join("out/part-r-00000")).expect("a result"))
    }
}

/// `WORD<TAB>COUNT` lines.
pub(crate) fn counts(text: &str) -> Counts {
    let parse = |line: &str| {
        let (word, count) = line.split_once('\t')?;
        Some((word.to_owned(), count.parse().ok()?))
    };
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("no count: {line:?}"))).collect::<BTreeMap<_, _>>()
}

/// Counts the words of a queue and waits for the end.
pub(crate) fn word_count(broker: &Broker, queue: &str, settings: &[&str]) -> Done {
    Program::job(&broker.address(), settings, &["wordcount", queue, "{}/out"]).end()
}
