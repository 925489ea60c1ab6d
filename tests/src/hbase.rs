//! A real HBase with its Thrift2 gateway, started by `scripts/hbase`.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Where HBase runs already: `scripts/hbase start FOLDER` (or `… FOLDER distributed`) has started it in this folder. Tests use it in place of one of their own.
const FOLDER: &str = "HQUEUE_TEST_HBASE";

/// HBase in a folder; what a test has started ends with its value, and with the test program however that ends.
#[derive(Debug)]
pub struct HBase {
    folder: PathBuf,
    gateway: String,
    _own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    script: Child,
    /// Open while HBase is to live.
    life: Option<ChildStdin>,
    /// Kept open: a script whose pipe is closed while it still writes dies, and ends HBase as it does.
    _said: Lines<BufReader<ChildStdout>>,
    _folder: TempDir,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("scripts/hbase")
}

impl HBase {
    /// The one that all tests of this program share: they must not harm it, and use namespaces of their own.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<HBase> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var_os(FOLDER) {
            Some(folder) => Self::running(PathBuf::from(folder)),
            None => Self::start(),
        })
    }

    /// One of our own.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(script());
        // Most of its time is starting.
        command.env("HBASE_TIER", "1").arg("run").arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().expect("scripts/hbase can be run");
        let life = script.stdin.take();
        let mut said = BufReader::new(script.stdout.take().expect("a pipe")).lines();
        let mut address = |of: &str| {
            let line = said.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix(of).map(str::to_owned));
            line.expect("scripts/hbase has started HBase (its standard error says why not)")
        };
        let gateway = address("gateway ");
        // Its last line.
        address("zookeeper ");
        Self { folder: folder.path().to_owned(), gateway, _own: Some(Own { script, life, _said: said, _folder: folder }) }
    }

    fn running(folder: PathBuf) -> Self {
        let gateway = std::fs::read_to_string(folder.join("run/gateway.address")).expect("HBase runs in that folder");
        Self { folder, gateway: gateway.trim().to_owned(), _own: None }
    }

    /// `host:port` of the Thrift2 gateway.
    #[must_use]
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// Whether its parts are processes of their own.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        self.folder.join("run/regionserver1.address").exists()
    }

    /// `host:port` of one of its processes.
    ///
    /// # Panics
    /// If none of that name was started.
    #[must_use]
    pub fn address_of(&self, process: &str) -> String {
        let address = std::fs::read_to_string(self.folder.join("run").join(process).with_extension("address"));
        address.expect("the script notes where its processes listen").trim().to_owned()
    }

    /// `host:port` of its ZooKeeper.
    ///
    /// # Panics
    /// If it was not started by our script.
    #[must_use]
    pub fn zookeeper(&self) -> String {
        std::fs::read_to_string(self.folder.join("zookeeper")).expect("the script notes it").trim().to_owned()
    }

    /// Runs `scripts/hbase COMMAND` on it, with more arguments, and gives what it prints.
    ///
    /// # Panics
    /// If that fails.
    pub fn script(&self, command: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let mut run = Command::new(script());
        run.arg(command).arg(&self.folder).args(arguments).envs(environment.iter().copied()).stdin(Stdio::null());
        let done = run.output().expect("scripts/hbase can be run");
        assert!(done.status.success(), "scripts/hbase {command} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Starts a further gateway with arguments of its own, and gives its `host:port`.
    pub fn another_gateway(&self, name: &str, arguments: &[&str]) -> String {
        self.script("gateway", &[&[name], arguments].concat(), &[("HBASE_GATEWAY_HEAP", "256m")])
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.life.take());
        let _ = self.script.wait();
    }
}
