//! Where the commands of a document are run: a folder, ports and, unless the document starts one, a broker of their own.

use std::collections::HashSet;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hqueue_tests::cluster::{fresh_root, shared_zookeeper};
use hqueue_tests::{Answer, Consumer, PATIENCE, free_port, hqueue, wait, wait_for};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::document::root;

/// No command of a document runs for longer, on a machine that is very busy.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) struct Session {
    folder: TempDir,
    port: u16,
    http: u16,
    /// Consumes everything: 127.0.0.1:9500 of the documents.
    consumer: Consumer,
    /// Refuses each message once: 127.0.0.1:9501.
    choosy: Consumer,
    zookeeper: Option<String>,
    goes_on: Vec<(String, Child)>,
}

impl Session {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["idl", "clients", "README.md"] {
            symlink(root().join(name), folder.path().join(name)).expect("a link");
        }
        let session = Self {
            folder,
            port: free_port(),
            http: free_port(),
            consumer: Consumer::start(),
            choosy: choosy(),
            zookeeper: None,
            goes_on: Vec::new(),
        };
        session.write_program();
        session
    }

    /// `hqueue` in the `PATH`: a broker for which the document names no ports gets ours.
    fn write_program(&self) {
        let bin = self.folder.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        let flag =
            |name: &str, port: u16| format!("[[ \" $* \" == *\" --{name} \"* ]] || set -- \"$@\" --{name} 127.0.0.1:{port}\n");
        let flags = flag("listen", self.port) + &flag("http", self.http);
        let is_broker = "[[ $1 == standalone || $1 == broker ]] && [[ \" $* \" != *\" --help \"* ]]";
        let program = format!("#!/bin/bash\nif {is_broker}; then\n{flags}fi\nexec {} \"$@\"\n", hqueue().display());
        fs::write(bin.join("hqueue"), program).expect("it can be written");
        fs::set_permissions(bin.join("hqueue"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    pub(crate) fn start_broker(&mut self) {
        self.go_on("hqueue standalone --data the-broker-of-the-test");
    }

    /// The same command on this machine: our ports, our ZooKeeper.
    fn here(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.contains("zk1:2181") {
            let place = self.zookeeper.get_or_insert_with(|| format!("{}{}", shared_zookeeper().host(), fresh_root()));
            text = text.replace("zk1:2181,zk2:2181,zk3:2181/hqueue", place);
        }
        text.replace("target/release/hqueue", "hqueue")
            .replace("/srv/hqueue", "srv-hqueue")
            .replace("any-broker:", "127.0.0.1:")
            .replace("0.0.0.0:9190", "127.0.0.1:9190")
            .replace(":9190", &format!(":{}", self.port))
            .replace(":9191", &format!(":{}", self.http))
            .replace("127.0.0.1:9500", &self.consumer.address())
            .replace("127.0.0.1:9501", &self.choosy.address())
    }

    fn command(&mut self, text: &str) -> Command {
        let text = self.here(text);
        let mut command = Command::new("bash");
        let path = format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
        command.args(["-e", "-o", "pipefail", "-c", &text]).current_dir(self.folder.path()).env("PATH", path);
        command.env("HOME", self.folder.path()).env("HQUEUE_CONNECT", format!("hqueue://127.0.0.1:{}", self.port));
        command.env_remove("HQUEUE_LOG").process_group(0).stdin(Stdio::null());
        command
    }

    /// Runs a script to its end. Its exit code, and what it printed.
    pub(crate) fn run(&mut self, text: &str) -> (Option<i32>, String) {
        self.run_with(text, Stdio::null())
    }

    /// Lines of `hqueue shell`.
    pub(crate) fn shell(&mut self, lines: &str) -> (Option<i32>, String) {
        let path = self.folder.path().join("lines");
        let lines = self.here(lines);
        fs::write(&path, lines).expect("it can be written");
        self.run_with("hqueue shell", File::open(path).expect("it is there").into())
    }

    fn run_with(&mut self, text: &str, input: Stdio) -> (Option<i32>, String) {
        let path = self.folder.path().join("printed");
        let printed = File::create(&path).expect("a file");
        let mut command = self.command(text);
        command.stdin(input).stdout(printed.try_clone().expect("a descriptor")).stderr(printed);
        let mut child = command.spawn().expect("bash can be run");
        let code = ended(&mut child, text, LIMIT);
        let printed = String::from_utf8_lossy(&fs::read(path).expect("it was written")).into_owned();
        (code, printed)
    }

    /// Starts what runs until the end of the document. A broker serves when this returns.
    pub(crate) fn go_on(&mut self, text: &str) {
        // Bash waits for what it runs, which gets the signal, too.
        let mut command = self.command(&format!("trap : TERM\n{text}"));
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).expect("a file");
        command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let mut child = command.spawn().expect("bash can be run");
        let serves = text.contains("standalone") || text.contains("hqueue broker");
        wait("it runs, and serves if it is a broker", LIMIT, || {
            let ended = child.try_wait().expect("it is ours");
            assert!(ended.is_none(), "{text}: {ended:?}: {}", self.log());
            !serves || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
        });
        self.goes_on.push((text.to_owned(), child));
        if let Some((queue, name)) = subscriber(text) {
            wait("it is registered", LIMIT, || {
                let (_, printed) = self.run(&format!("hqueue list_subscribers {queue} --format json"));
                let value: serde_json::Value = serde_json::from_str(&printed).unwrap_or_default();
                let mut subscribers = value["subscribers"].as_array().into_iter().flatten();
                subscribers.any(|s| s["name"] == name && s["endpoints"].as_array().is_some_and(|e| !e.is_empty()))
            });
        }
    }

    /// Ends everything that goes on, the last first, as an operator would.
    pub(crate) fn all_end(&mut self) {
        while let Some((text, mut child)) = self.goes_on.pop() {
            signal(&child, Signal::TERM);
            let code = ended(&mut child, &text, LIMIT);
            assert_eq!(code, Some(0), "{text}: it ends in order: {}", self.log());
        }
    }

    pub(crate) fn log(&self) -> String {
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

fn choosy() -> Consumer {
    let mut seen = HashSet::new();
    Consumer::answering(move |messages| {
        let is_new = messages.first().is_some_and(|message| seen.insert((message.partition, message.id)));
        Answer::Value(if is_new { -3 } else { 0 })
    })
}

/// Queue and name of `hqueue subscribe QUEUE --name NAME`.
fn subscriber(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("hqueue subscribe ")?;
    let (_, name) = rest.split_once("--name ")?;
    Some((rest.split_whitespace().next()?, name.split_whitespace().next()?))
}

fn ended(child: &mut Child, text: &str, limit: Duration) -> Option<i32> {
    let deadline = Instant::now() + limit;
    let status = wait_for(&format!("the end of {text}"), limit + PATIENCE, || {
        if Instant::now() > deadline {
            signal(child, Signal::KILL);
        }
        child.try_wait().expect("it is ours")
    });
    status.code()
}

/// To a process of ours and everything that it has started.
fn signal(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended.
        let _ = kill_process_group(group, signal);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for (_, child) in &mut self.goes_on {
            signal(child, Signal::KILL);
            let _ = child.wait();
        }
    }
}
