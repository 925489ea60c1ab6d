//! The broker under a counting allocator, in a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use super::process::free_port;
use super::{Places, Setup, hqueue};
use crate::failure::{Doing, Failure, Outcome};

const PATIENCE: Duration = Duration::from_secs(10);

/// What a process has allocated since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocated {
    pub allocations: u64,
    /// Of them, growth and shrinking in place or not.
    pub reallocations: u64,
    pub bytes: u64,
}

/// A broker that can be asked what it has allocated. Ended, and its data removed, when dropped.
#[derive(Debug)]
pub struct Counted {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub address: SocketAddr,
    data: PathBuf,
}

impl Counted {
    /// Starts it with a queue and a subscriber of everything.
    pub async fn start(places: &Places, setup: &Setup) -> Outcome<Self> {
        let data = places.data.join("counted");
        std::fs::create_dir_all(&data).doing(|| format!("making {}", data.display()))?;
        let address = free_port()?;
        let program = places.bench.with_file_name("hqueue-bench-counted");
        let output = File::create(places.data.join("counted.out")).doing(|| "making counted.out".to_owned())?;
        let mut child = Command::new(&program)
            .arg("--data")
            .arg(&data)
            .arg("--listen")
            .arg(address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            .spawn()
            .doing(|| format!("starting {}", program.display()))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::Side("a child without pipes".to_owned()));
        };
        let counted = Self { child, questions, answers: BufReader::new(answers), address, data };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).await.is_err() {
            if Instant::now() > deadline {
                return Err(Failure::Side(format!("{} did not open {address} within {PATIENCE:?}", program.display())));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        hqueue::set_up(address, setup).await?;
        Ok(counted)
    }

    /// Waits for its answer.
    pub fn ask(&mut self) -> Outcome<Allocated> {
        let doing = || "asking the counted broker".to_owned();
        self.questions.write_all(b"\n").doing(doing)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).doing(doing)?;
        serde_json::from_str(&line).map_err(|error| Failure::Side(format!("the counted broker said {line:?}: {error}")))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait()).and_then(|_| std::fs::remove_dir_all(&self.data));
        if let Err(error) = ended {
            eprintln!("ending the counted broker: {error}");
        }
    }
}
