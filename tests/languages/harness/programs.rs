//! The `run` scripts: of the examples in `clients`, and of the test programs beside this harness.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use hqueue_tests::figures::Figures;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::NamedTempFile;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder")
}

/// The command of an example: `clients/<language>/run` with these words.
pub(crate) fn example(language: &str, words: &[&str]) -> Command {
    command(&root().join("clients").join(language).join("run"), words)
}

/// The command of a test program: `tests/languages/<language>/run` with these words.
pub(crate) fn test_program(language: &str, words: &[&str]) -> Command {
    command(&root().join("tests/languages").join(language).join("run"), words)
}

fn command(script: &Path, words: &[&str]) -> Command {
    set_up(script);
    let mut command = Command::new(script);
    command.args(words);
    command
}

/// Installs, generates and builds, once a test run for each script.
fn set_up(script: &Path) {
    static DONE: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    if DONE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().contains(script) {
        return;
    }
    // Scripts of other languages go on meanwhile; the same one waits for its lock.
    let output = Command::new(script).arg("setup").stdin(Stdio::null()).output().expect("the script can be run");
    assert!(output.status.success(), "{} setup: {}", script.display(), String::from_utf8_lossy(&output.stderr));
    DONE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(script.to_owned());
}

/// A running program with all processes that it starts; they are killed with its value.
pub(crate) struct Program {
    child: Child,
    errors: NamedTempFile,
    what: String,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Program {
    /// Starts it; its standard output is for the caller to read.
    pub(crate) fn start(mut command: Command) -> (Self, ChildStdout) {
        let errors = NamedTempFile::new().expect("a temporary file");
        let file: File = errors.reopen().expect("it is ours");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).process_group(0);
        let what = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
        let stdout = child.stdout.take().expect("a pipe");
        (Self { child, errors, what }, stdout)
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is ours")
    }

    /// What its process uses.
    pub(crate) fn figures(&self) -> Figures {
        Figures::of(self.child.id())
    }

    /// What it wrote to standard error.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.errors.path()).unwrap_or_default()).into_owned()
    }

    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// `kill -9`, and waits for the end.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        // It may have ended by itself.
        let _ = kill_process_group(pid, signal);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let errors = self.errors();
            let lines: Vec<&str> = errors.lines().collect();
            println!("--- {}\n{:.4000}", self.what, lines[lines.len().saturating_sub(30)..].join("\n"));
        }
    }
}
