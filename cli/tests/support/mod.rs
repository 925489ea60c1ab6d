//! The built binary, and a broker of it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(15);

/// What a run of the binary left.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The binary with these words, and with a broker that is not there.
pub fn hqueue(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hqueue"));
    command.args(words).env_remove("HQUEUE_CONNECT").env_remove("HQUEUE_LOG").env_remove("HQUEUE_LOG_FORMAT");
    command
}

/// Runs it to its end.
pub fn run(command: &mut Command, input: &[u8]) -> Done {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It may end without having read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// `hqueue standalone`, killed with the test.
pub struct Broker {
    pub data: TempDir,
    pub address: SocketAddr,
    child: Child,
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Broker {
    pub fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let words = ["standalone", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"];
        let mut command = hqueue(&words);
        let mut child = command.arg(data.path()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.find_map(|line| line.unwrap().strip_prefix("hqueue: serving on ").map(str::to_owned)).unwrap();
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.split(',').next().unwrap().parse().unwrap();
        Self { data, address, child }
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = hqueue(words);
        command.args(["--connect", &format!("hqueue://{}", self.address)]);
        command
    }

    pub fn try_run(&self, words: &[&str]) -> Done {
        // Words behind -- are values: flags stand before them.
        let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let (flags, values) = words.split_at(at);
        run(self.command(flags).args(values), b"")
    }

    /// Its standard output.
    pub fn run(&self, words: &[&str]) -> String {
        self.run_with(words, b"")
    }

    pub fn run_with(&self, words: &[&str], input: &[u8]) -> String {
        let done = run(&mut self.command(words), input);
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
        done.out
    }

    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.run(&[words, &["--format", "json"]].concat())).unwrap()
    }

    pub fn create(&self, queue: &str, partitions: u16) {
        self.run(&["create", queue, "--partitions", &partitions.to_string(), "--ttl", "3600"]);
    }

    pub fn signal(&self, signal: &str) {
        send(&self.child, signal);
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

pub fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

pub fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "it did not end within {PATIENCE:?}");
        // The step of a look with a deadline: a child's end cannot be waited for with one.
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("hqueue://{}", listener.local_addr().unwrap())
}
