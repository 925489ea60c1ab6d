//! The program `zookeeper-client`, from outside.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

use crate::support::{PATIENCE, T};

/// A process that holds a session; it ends with its value.
#[derive(Debug)]
pub(crate) struct ClientProcess {
    child: Child,
    lines: Receiver<String>,
    /// Open while it is to live.
    input: Option<ChildStdin>,
    log: NamedTempFile,
}

impl ClientProcess {
    pub(crate) fn start(hosts: &str, root: &str, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zookeeper-client"));
        command.arg(format!("{hosts}{root}")).arg(T.as_millis().to_string()).args(words);
        let log = NamedTempFile::new().unwrap();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.reopen().unwrap());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).all(|text| line.send(text).is_ok()));
        Self { child, lines, input, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that it has logged, at all levels.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// The next line.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the client prints another line")
    }

    /// A line that is there already.
    pub(crate) fn line_within(&self, time: Duration) -> Option<String> {
        self.lines.recv_timeout(time).ok()
    }

    /// Reads up to `held`, and returns the session.
    #[track_caller]
    pub(crate) fn held(&self) -> i64 {
        loop {
            if let Some(id) = self.line().strip_prefix("held ") {
                return id.parse().unwrap();
            }
        }
    }

    /// Reads up to `away`.
    #[track_caller]
    pub(crate) fn away(&self) {
        while self.line() != "away" {}
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it as it should end, and reads up to `closed`.
    #[track_caller]
    pub(crate) fn close(&mut self) {
        drop(self.input.take());
        while self.line() != "closed" {}
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
