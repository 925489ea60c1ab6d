//! A process that this program started, and ends by its id.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;

use super::usage::Usage;
use crate::failure::{Doing, Failure, Outcome};

/// How long a process may take to open its port, and to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a port or an end is looked for.
const LOOK: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    /// Holds what it prints.
    output: PathBuf,
    /// By the driver's machine.
    pub started: Instant,
}

impl Process {
    /// Starts a program; what it prints goes to a file `output`.
    pub fn start(program: &Path, args: &[&OsStr], output: PathBuf) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.args(args);
        Self::start_command(command, output)
    }

    /// Starts what the command says; what it prints goes to a file `output`.
    pub fn start_command(mut command: Command, output: PathBuf) -> Outcome<Self> {
        let out = File::create(&output).doing(|| format!("making {}", output.display()))?;
        let err = out.try_clone().doing(|| format!("opening {}", output.display()))?;
        let program = Path::new(command.get_program()).to_owned();
        let started = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.doing(|| format!("starting {}", program.display()))?;
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, child, output, started })
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it and its children have used of the machine so far.
    pub fn usage(&mut self) -> Outcome<Usage> {
        self.check()?;
        Usage::of_tree(self.id())
    }

    /// Ends it at once.
    pub fn kill(&mut self) -> Outcome<()> {
        if self.has_ended()? {
            return Ok(());
        }
        self.child.kill().doing(|| format!("ending {}", self.name))?;
        self.child.wait().doing(|| format!("waiting for {}", self.name)).map(drop)
    }

    /// Asks it to stop and waits until it has.
    pub async fn stop(&mut self) -> Outcome<()> {
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).map_err(std::io::Error::from).doing(|| format!("stopping {}", self.name))?;
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended()? {
            if Instant::now() > deadline {
                return Err(Failure::Side(format!("{} did not stop within {PATIENCE:?}", self.name)));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// An error with its last words if it has ended.
    pub fn check(&mut self) -> Outcome<()> {
        if self.has_ended()? {
            let printed = std::fs::read_to_string(&self.output).unwrap_or_default();
            let last: Vec<_> = printed.lines().rev().take(10).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            return Err(Failure::Side(format!("{} has ended: {}", self.name, last.join("\n"))));
        }
        Ok(())
    }

    fn has_ended(&mut self) -> Outcome<bool> {
        Ok(self.child.try_wait().doing(|| format!("looking for {}", self.name))?.is_some())
    }
}

/// A port of the loopback that nobody uses now.
pub fn free_port() -> Outcome<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing(|| "looking for a free port".to_owned())?;
    listener.local_addr().doing(|| "looking for a free port".to_owned())
}

/// Waits until the process listens.
pub async fn wait_for_port(process: &mut Process, address: SocketAddr) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).await.is_err() {
        process.check()?;
        if Instant::now() > deadline {
            return Err(Failure::Side(format!("{} did not open {address} within {PATIENCE:?}", process.name)));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// What a program says to `--version`.
pub fn version_of(program: &Path) -> Outcome<String> {
    let output =
        Command::new(program).arg("--version").output().doing(|| format!("asking {} for its version", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}
