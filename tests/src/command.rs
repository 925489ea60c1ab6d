//! Runs of the command line.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::binary::hqueue;
use crate::wait::{PATIENCE, wait_for};

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// `None`: by a signal.
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
    pub took: Duration,
    /// What was run, for messages.
    what: String,
}

impl Done {
    /// Standard output of a run that succeeded.
    ///
    /// # Panics
    /// If the exit code is not 0, or the output is not UTF-8.
    #[track_caller]
    pub fn text(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self}");
        std::str::from_utf8(&self.out).expect("the output is UTF-8")
    }

    /// The one JSON object that a run printed.
    ///
    /// # Panics
    /// If the run failed or printed something else.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.text()).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// The JSON objects that a run printed, one a line.
    ///
    /// # Panics
    /// If the run failed or printed something else.
    #[track_caller]
    #[must_use]
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        self.text().lines().map(parse).collect()
    }

    /// Checks that the run was refused with this exit code, in few words, saying all of `words`.
    ///
    /// # Panics
    /// If it was not.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not said: {self}");
        }
        assert!(!self.err.contains("panicked"), "{self}");
        assert!(self.err.trim().lines().count() <= 8, "too many words: {self}");
        assert!(self.out.is_empty(), "a refusal goes to standard error: {self}");
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let out = String::from_utf8_lossy(&self.out);
        write!(f, "{}: exit {:?} after {:?}\n{:.2000}\n{:.2000}", self.what, self.code, self.took, out, self.err)
    }
}

/// Runs `hqueue` with these words and this standard input to its end.
///
/// # Panics
/// If it cannot be run, or runs for more than a minute.
#[track_caller]
pub fn run<W: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = W>, input: &[u8]) -> Done {
    let mut command = Command::new(hqueue());
    command.args(words).env_remove("HQUEUE_CONNECT").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let what = format!("{command:?}");
    let began = Instant::now();
    let mut child = command.spawn().expect("hqueue can be run");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let feeding = std::thread::spawn(move || {
        // A program that refuses its words reads nothing.
        let _ = stdin.write_all(&input);
    });
    let done = end_of(child, &what);
    feeding.join().expect("feeding does not panic");
    Done {
        code: done.status.code(),
        out: done.stdout,
        err: String::from_utf8_lossy(&done.stderr).into_owned(),
        took: began.elapsed(),
        what,
    }
}

fn end_of(child: Child, what: &str) -> std::process::Output {
    let pid = child.id();
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    match ended.recv_timeout(Duration::from_secs(60)) {
        Ok(output) => output.expect("the output can be read"),
        Err(_) => {
            signal(pid, Signal::KILL);
            panic!("{what} did not end within a minute");
        }
    }
}

/// Sends a signal to a process that this one started.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}

/// A command that prints as it goes (`subscribe`); it is killed with its value.
#[derive(Debug)]
pub struct Follower {
    child: Child,
    lines: Receiver<String>,
    reading: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts `hqueue` with these words.
    ///
    /// # Panics
    /// If it cannot be run.
    #[must_use]
    pub fn start<W: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut command = Command::new(hqueue());
        command.args(words).env_remove("HQUEUE_CONNECT").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("hqueue can be run");
        let stdout = child.stdout.take().expect("a pipe");
        let (line, lines) = mpsc::channel();
        let reading = std::thread::spawn(move || read_lines(stdout, &line));
        Self { child, lines, reading: Some(reading) }
    }

    /// The next line that it prints.
    ///
    /// # Panics
    /// If none comes.
    #[track_caller]
    #[must_use]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the command prints another line")
    }

    /// The next line, as JSON.
    ///
    /// # Panics
    /// If none comes, or something else.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.line()).expect("a line is a JSON object")
    }

    /// Sends SIGTERM and waits for the end. Returns the exit code and the lines that were not read.
    ///
    /// # Panics
    /// If it does not end.
    #[track_caller]
    pub fn terminate(mut self) -> (Option<i32>, Vec<String>) {
        signal(self.child.id(), Signal::TERM);
        let status = wait_for("the command ends after SIGTERM", PATIENCE, || self.child.try_wait().expect("it is ours"));
        if let Some(reading) = self.reading.take() {
            reading.join().expect("reading does not panic");
        }
        (status.code(), self.lines.try_iter().collect())
    }

    /// Ends it without warning.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_lines(stdout: ChildStdout, line: &mpsc::Sender<String>) {
    for text in BufReader::new(stdout).lines() {
        let Ok(text) = text else { return };
        if line.send(text).is_err() {
            return;
        }
    }
}
