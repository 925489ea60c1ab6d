//! A broker process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hqueue_protocol::generated::{THQueueAdminServiceSyncClient, TQueueStatus, TSubscriberSpec};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::binary::hqueue;
use crate::command::{Done, run, signal};
use crate::figures::Figures;
use crate::gateway::{self, Admin, Dialect, Gateway};
use crate::message::{Id, Message};
use crate::metrics::{self, Metrics};
use crate::port::free_port;
use crate::subscription::Subscription;
use crate::wait::{PATIENCE, wait, wait_for};

/// How a broker is started, where it differs from the usual.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Further flags of `hqueue standalone` or `hqueue broker`.
    pub flags: Vec<String>,
    /// Where it keeps its data; `None`: in a folder that goes away with the broker's value.
    pub data: Option<PathBuf>,
    /// What a shell does before it becomes the broker: `ulimit -n 256`.
    pub before: Option<String>,
    /// Where it meets others; `None`: it is alone.
    pub meeting: Option<Meeting>,
}

/// Where brokers of a cluster meet.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// `HOST:PORT/root` of ZooKeeper.
    pub zookeeper: String,
    /// `3s`
    pub session_timeout: String,
}

/// A broker; it is killed and its data removed with its value. If the test fails, the end of its log is shown.
#[derive(Debug)]
pub struct Broker {
    setup: Setup,
    /// Log, and data unless the setup names another folder.
    folder: TempDir,
    port: u16,
    http: u16,
    process: Option<Child>,
}

impl Broker {
    /// Starts one and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn start() -> Self {
        Self::with(Setup::default())
    }

    /// The same with further flags.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn with_flags(flags: &[&str]) -> Self {
        Self::with(Setup { flags: flags.iter().map(|f| (*f).to_owned()).collect(), ..Setup::default() })
    }

    /// The same as the setup says.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn with(setup: Setup) -> Self {
        let mut broker = Self::prepared(setup);
        broker.restart();
        broker
    }

    /// One that tells others and its clients another address than its port, which `advertise` is told.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn advertising(setup: Setup, advertise: impl FnOnce(u16) -> String) -> Self {
        let mut broker = Self::prepared(setup);
        broker.setup.flags.extend(["--advertise".to_owned(), advertise(broker.port)]);
        broker.restart();
        broker
    }

    /// The same, but it runs only once it is [launched](Self::launch).
    ///
    /// # Panics
    /// If its folder cannot be made.
    #[must_use]
    pub fn prepared(setup: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { setup, folder, port: free_port(), http: free_port(), process: None }
    }

    /// Starts the process again, on the same ports and data, and waits until it serves.
    ///
    /// # Panics
    /// If it is running, or does not start.
    #[track_caller]
    pub fn restart(&mut self) {
        self.launch();
        self.wait_until_it_serves();
    }

    /// # Panics
    /// If it does not serve, or has ended.
    #[track_caller]
    pub fn wait_until_it_serves(&mut self) {
        wait("the broker serves", PATIENCE, || {
            let ended = self.process.as_mut().and_then(|p| p.try_wait().expect("it is ours"));
            assert!(ended.is_none(), "the broker ended at once: {ended:?}");
            self.try_admin().is_ok_and(|mut admin| admin.cluster_status().is_ok())
        });
    }

    /// Starts the process and waits for nothing.
    ///
    /// # Panics
    /// If it is running.
    #[track_caller]
    pub fn launch(&mut self) {
        assert!(self.process.is_none(), "the broker is running");
        let log = File::options().create(true).append(true).open(self.log_path()).expect("the log can be written");
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        self.process = Some(command.spawn().expect("hqueue can be run"));
    }

    fn command(&self) -> Command {
        let mut command = match &self.setup.before {
            None => Command::new(hqueue()),
            Some(before) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("{before} || exit 1; exec \"$0\" \"$@\"")).arg(hqueue());
                shell
            }
        };
        match &self.setup.meeting {
            None => drop(command.arg("standalone")),
            Some(Meeting { zookeeper, session_timeout }) => {
                command.args(["broker", "--zookeeper", zookeeper, "--session-timeout", session_timeout]);
            }
        }
        command.arg("--data").arg(self.data());
        command.args(["--listen", &format!("127.0.0.1:{}", self.port), "--http", &format!("127.0.0.1:{}", self.http)]);
        command.args(&self.setup.flags);
        command
    }

    /// Its data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.setup.data.clone().unwrap_or_else(|| self.folder.path().join("data"))
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Everything that it has logged, over all its starts.
    ///
    /// # Panics
    /// If the log cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_path()).expect("the log can be read")).into_owned()
    }

    /// Whether a process was started and not yet ended by us.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.process.is_some()
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port` of its gateway.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    #[must_use]
    pub fn http_port(&self) -> u16 {
        self.http
    }

    /// What `--connect` takes.
    #[must_use]
    pub fn url(&self) -> String {
        format!("hqueue://127.0.0.1:{}", self.port)
    }

    /// # Panics
    /// If it is not running.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the broker runs").id()
    }

    /// What it uses now.
    ///
    /// # Panics
    /// If it is not running.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures::of(self.pid())
    }

    /// `kill -9`.
    ///
    /// # Panics
    /// If it is not running.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("the broker runs");
        process.kill().expect("it is ours");
        process.wait().expect("it is ours");
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

    /// Sends SIGTERM.
    ///
    /// # Panics
    /// If it is not running.
    pub fn terminate(&self) {
        signal(self.pid(), Signal::TERM);
    }

    /// Sends SIGINT.
    ///
    /// # Panics
    /// If it is not running.
    pub fn interrupt(&self) {
        signal(self.pid(), Signal::INT);
    }

    /// Waits for its end, by whatever it was asked to end.
    ///
    /// # Panics
    /// If it does not end within `limit`.
    #[track_caller]
    pub fn ended(&mut self, limit: Duration) -> ExitStatus {
        let mut process = self.process.take().expect("the broker runs");
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = process.try_wait().expect("it is ours") {
                return status;
            }
            if Instant::now() > deadline {
                self.process = Some(process);
                panic!("the broker did not end within {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it in order and returns how long that took.
    ///
    /// # Panics
    /// If it does not end within 12 s, or not with exit code 0.
    #[track_caller]
    pub fn stop(&mut self) -> Duration {
        let began = Instant::now();
        self.terminate();
        let status = self.ended(Duration::from_secs(12));
        assert_eq!(status.code(), Some(0), "an orderly stop ends with exit code 0");
        began.elapsed()
    }

    /// A run of the command line against this broker: `broker.run(&["list"])`.
    ///
    /// # Panics
    /// If it cannot be run.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Done {
        self.run_with(words, b"")
    }

    /// The same with standard input.
    ///
    /// # Panics
    /// If it cannot be run.
    #[track_caller]
    pub fn run_with(&self, words: &[&str], input: &[u8]) -> Done {
        run(self.words(words), input)
    }

    /// The words of a command line against this broker; the first is the command.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn words(&self, words: &[&str]) -> Vec<String> {
        let (command, words) = words.split_first().expect("a command");
        [command, "--connect", &self.url()].iter().chain(words).map(|w| (*w).to_owned()).collect()
    }

    /// A client of its gateway, in this dialect.
    pub fn try_gateway(&self, dialect: Dialect) -> thrift::Result<Gateway> {
        gateway::gateway(self.port, dialect)
    }

    /// A client of its gateway.
    ///
    /// # Panics
    /// If it cannot connect.
    #[track_caller]
    #[must_use]
    pub fn gateway(&self) -> Gateway {
        self.try_gateway(Dialect::USUAL).expect("the gateway is open")
    }

    /// A client of its administration.
    pub fn try_admin(&self) -> thrift::Result<Admin> {
        gateway::admin(self.port)
    }

    /// A client of its administration.
    ///
    /// # Panics
    /// If it cannot connect.
    #[track_caller]
    #[must_use]
    pub fn admin(&self) -> Admin {
        self.try_admin().expect("the administration is open")
    }

    /// Makes a queue whose messages live for an hour.
    ///
    /// # Panics
    /// If it is refused.
    #[track_caller]
    pub fn create(&self, queue: &str, partitions: i32) {
        self.create_with_ttl(queue, partitions, 3600);
    }

    /// # Panics
    /// If it is refused.
    #[track_caller]
    pub fn create_with_ttl(&self, queue: &str, partitions: i32, ttl_seconds: i64) {
        let spec = crate::queue_spec(queue, partitions, ttl_seconds);
        self.admin().create_queue(spec).expect("the queue is made");
    }

    /// Adds a subscriber with a fixed endpoint, from the oldest message on; options as on the command line (`call-timeout`, `1s`).
    ///
    /// # Panics
    /// If it is refused.
    #[track_caller]
    pub fn subscribe(&self, queue: &str, name: &str, address: &str, options: &[(&str, &str)]) {
        let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let spec = TSubscriberSpec::new(
            name.as_bytes().to_vec(),
            vec![address.to_owned()],
            Vec::new(),
            Vec::new(),
            "earliest".to_owned(),
            Some(options),
        );
        self.admin().add_subscriber(queue.into(), spec).expect("the subscriber is added");
    }

    /// Puts a batch of text values into a partition and returns their ids.
    ///
    /// # Panics
    /// If it is refused.
    #[track_caller]
    pub fn put<V: AsRef<str>>(&self, queue: &str, partition: i16, values: &[V]) -> Vec<Id> {
        let messages = values.iter().map(|v| crate::message::to_put("t", v.as_ref())).collect();
        gateway::put_for_ids(&mut self.gateway(), queue, partition, messages).expect("the put is taken").1
    }

    /// Everything in a partition.
    ///
    /// # Panics
    /// If it cannot be read.
    #[track_caller]
    #[must_use]
    pub fn scan(&self, queue: &str, partition: i16) -> Vec<Message> {
        gateway::scan(&mut self.gateway(), queue, partition, gateway::everything()).expect("the partition can be read")
    }

    /// The status of a queue.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    #[must_use]
    pub fn status(&self, queue: &str) -> TQueueStatus {
        self.admin().queue_status(queue.into()).expect("the queue has a status")
    }

    /// The status of a subscription.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    #[must_use]
    pub fn subscription(&self, queue: &str, name: &str) -> Subscription {
        let status = self.status(queue);
        let mut all = status.subscriptions.into_iter().flatten();
        let found = all.find(|s| s.name.as_deref() == Some(name.as_bytes()));
        Subscription(found.unwrap_or_else(|| panic!("{name} is not in the status of {queue}")))
    }

    /// Waits until a subscription has finished everything that it wants.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn wait_for_no_lag(&self, queue: &str, name: &str) {
        wait_for("the subscription has finished everything", PATIENCE * 2, || {
            (self.subscription(queue, name).lag() == 0).then_some(())
        });
    }

    /// What `/metrics` says.
    ///
    /// # Panics
    /// If it says nothing.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let (code, text) = metrics::get(self.http, "/metrics");
        assert_eq!(code, 200, "{text}");
        Metrics::parse(&text)
    }

    /// The folders and files of its data with their sizes, for what must not change.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        list(&self.data(), &mut files);
        files.sort();
        files
    }
}

fn list(folder: &Path, files: &mut Vec<(PathBuf, u64)>) {
    // Files come and go while a broker runs.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => list(&entry.path(), files),
            Ok(metadata) => files.push((entry.path(), metadata.len())),
            Err(_) => {}
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            let log = fs::read(self.log_path()).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let lines: Vec<&str> = log.lines().collect();
            println!("--- the end of the broker's log\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
        }
    }
}
