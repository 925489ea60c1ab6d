//! A ZooKeeper server of our own, from Debian's package.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::command::signal;
use crate::port::free_port;
use crate::wait::{PATIENCE, wait};

const JARS: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";

/// The shell kills the server when its standard input ends: with us, however that happens.
const KEEPER: &str = r#"exec 3<&0; "$@" </dev/null >>log 2>&1 & echo $!; read -r _ <&3; kill -9 $! 2>/dev/null; wait"#;

/// How long one question waits for its answer: a server that is not ready answers nothing.
const ASK: Duration = Duration::from_millis(500);

/// A server; it is killed and its data removed with its value.
#[derive(Debug)]
pub struct ZooKeeper {
    folder: TempDir,
    port: u16,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    keeper: Child,
    /// Open while the server is to live.
    _life: ChildStdin,
}

impl ZooKeeper {
    /// Starts one by itself and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn start() -> Self {
        let mut server = Self::prepared();
        server.launch();
        server.wait_until_it_serves();
        server
    }

    /// The same, but it runs only once it is [launched](Self::launch).
    ///
    /// # Panics
    /// If its folder cannot be made.
    #[must_use]
    pub fn prepared() -> Self {
        Self::configured(free_port(), "")
    }

    pub(super) fn configured(port: u16, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("data")).expect("a folder for the data");
        let configuration = format!(
            "tickTime=500\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
             4lw.commands.whitelist=*\nmaxClientCnxns=0\n{more}",
            folder.path().join("data").display()
        );
        fs::write(folder.path().join("zoo.cfg"), configuration).expect("the configuration can be written");
        Self { folder, port, process: None }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the process, again too, and waits for nothing.
    ///
    /// # Panics
    /// If it is running, or cannot be run: is the package `zookeeper` installed?
    #[track_caller]
    pub fn launch(&mut self) {
        assert!(self.process.is_none(), "the server is running");
        assert!(Path::new("/usr/share/java/zookeeper.jar").exists(), "Debian's package zookeeper is not installed");
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JARS]);
        command.args(["org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]);
        command.current_dir(self.folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().expect("a shell can be run");
        let mut pid = String::new();
        let stdout = keeper.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut pid).expect("the shell tells the process id");
        let pid = pid.trim().parse().expect("a process id");
        let life = keeper.stdin.take().expect("a pipe");
        self.process = Some(Process { pid, keeper, _life: life });
    }

    /// Starts the process again and waits until it serves.
    ///
    /// # Panics
    /// If it is running, or does not serve.
    #[track_caller]
    pub fn restart(&mut self) {
        self.launch();
        self.wait_until_it_serves();
    }

    /// # Panics
    /// If it does not serve.
    #[track_caller]
    pub fn wait_until_it_serves(&self) {
        wait(&format!("ZooKeeper serves ({})", self.folder.path().join("log").display()), PATIENCE, || self.mode().is_some());
    }

    /// `standalone`, `leader` or `follower`; `None`: it does not serve.
    #[must_use]
    pub fn mode(&self) -> Option<String> {
        let answer = self.ask("srvr")?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    /// The answer to a command of four letters.
    #[must_use]
    pub fn ask(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), ASK).ok()?;
        stream.set_read_timeout(Some(ASK)).ok()?;
        stream.write_all(command.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// `host:port`, as in a connect string.
    #[must_use]
    pub fn host(&self) -> String {
        self.address().to_string()
    }

    /// Where it logs.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// `kill -9`.
    ///
    /// # Panics
    /// If it is not running.
    pub fn kill(&mut self) {
        self.process.take().expect("the server runs").end();
    }

    /// Stops the process where it is, until [`thaw`](Self::thaw).
    ///
    /// # Panics
    /// If it is not running.
    pub fn freeze(&self) {
        signal(self.pid(), Signal::STOP);
    }

    /// # Panics
    /// If it is not running.
    pub fn thaw(&self) {
        signal(self.pid(), Signal::CONT);
    }

    fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").pid
    }

    /// Appends to what it logs: only for messages of tests.
    #[must_use]
    pub fn log(&self) -> String {
        let mut text = String::new();
        let read = File::open(self.log_path()).and_then(|mut file| file.read_to_string(&mut text));
        read.map_or_else(|error| error.to_string(), |_| text)
    }
}

impl Process {
    fn end(mut self) {
        signal(self.pid, Signal::KILL);
        drop(self._life);
        self.keeper.wait().expect("the shell is ours");
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.end();
        }
    }
}
