//! An HBase that `scripts/hbase start FOLDER` has started: HQueue keeps messages in it, and its own clients write the same rows.

mod rows;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hqueue_hbase::gateway::{GatewayError, GatewayOptions, Gateways};
use hqueue_hbase::schema::{HEADERS, INDEX, MESSAGE, split_keys};
use hqueue_hbase::table::{TableName, TableSpec, create, describe, ensure_namespace, remove};
use tokio::time::Instant;
use uuid::Uuid;

pub use self::rows::{Written, write};
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::PutShape;
use crate::sides::{Usage, queue_name};

/// Longer than making a table takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of all tables here.
pub const NAMESPACE: &str = "bench";
const RAW: &str = "raw";

/// A folder in which HBase runs.
#[derive(Clone, Debug)]
pub struct HBase {
    folder: PathBuf,
    /// `host:port` of its Thrift2 gateway.
    pub gateway: String,
}

impl HBase {
    pub fn in_folder(folder: &Path) -> Outcome<Self> {
        let address = folder.join("run/gateway.address");
        let not_there =
            |error| Failure::Usage(format!("{}: {error}: start one with scripts/hbase start FOLDER", address.display()));
        let gateway = std::fs::read_to_string(&address).map_err(not_there)?.trim().to_owned();
        let folder = folder.canonicalize().doing(|| format!("looking for {}", folder.display()))?;
        Ok(Self { folder, gateway })
    }

    /// The ids of its processes, the gateway among them.
    pub fn ids(&self) -> Outcome<Vec<u32>> {
        let run = self.folder.join("run");
        let doing = || format!("listing {}", run.display());
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&run).doing(doing)? {
            let path = entry.doing(doing)?.path();
            if path.extension() == Some(OsStr::new("pid")) {
                let id = std::fs::read_to_string(&path).doing(|| format!("reading {}", path.display()))?;
                ids.push(id.trim().parse().map_err(|_| Failure::Side(format!("{}: {id:?} is no process", path.display())))?);
            }
        }
        Ok(ids)
    }

    /// What all of its processes have used so far.
    pub fn usage(&self) -> Outcome<Usage> {
        self.ids()?.into_iter().try_fold(Usage::default(), |all, id| Ok(all.and(Usage::of(id)?)))
    }

    /// Makes the table of rows as a queue of so many partitions has one, and returns its name.
    pub async fn table(&self, partitions: i16, regions: i16) -> Outcome<String> {
        let (name, gateways) = (TableName::new(NAMESPACE, RAW), self.gateways());
        ensure_namespace(&gateways, NAMESPACE, Instant::now() + PATIENCE).await.map_err(failed("making a namespace"))?;
        let spec = TableSpec {
            ttl_seconds: Some(7 * 86_400),
            families: [MESSAGE, HEADERS, INDEX].map(<[u8]>::to_vec).to_vec(),
            split_keys: split_keys(partitions, partitions.div_euclid(regions).max(1)),
            ..TableSpec::default()
        };
        let made = create(&gateways, &name, &spec, Uuid::new_v4(), Instant::now() + PATIENCE).await;
        made.map_err(failed("making a table"))?;
        Ok(name.to_string())
    }

    /// Removes what was written, so that HBase's memory is free of it.
    pub async fn clear(&self) -> Outcome<()> {
        let (gateways, deadline) = (self.gateways(), Instant::now() + PATIENCE);
        for name in [RAW.to_owned(), queue_name(0)].map(|name| TableName::new(NAMESPACE, &name)) {
            let found = describe(&gateways, &name, deadline).await.map_err(failed("looking for a table"))?;
            if let Some(identity) = found.and_then(|found| found.identity) {
                remove(&gateways, &name, identity.incarnation, deadline).await.map_err(failed("removing a table"))?;
            }
        }
        Ok(())
    }

    fn gateways(&self) -> Gateways {
        Gateways::new(GatewayOptions::new(vec![self.gateway.clone()]))
    }

    /// Writes the same rows with HBase's own Java client, without the gateway; returns rows and seconds.
    pub async fn write_with_java(&self, table: &str, plan: &Writing) -> Outcome<Written> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(here.with_file_name("scripts").join("hbase"));
        command.env("HBASE_TIER", "4").arg("java").arg(&self.folder).arg(here.join("hbase/Rows.java")).arg(table);
        let numbers = [plan.connections, plan.shape.messages, plan.shape.value_bytes, usize::from(plan.partitions)];
        command.args(numbers.map(|number| number.to_string()));
        command.args([plan.warm_up, plan.time].map(|time| time.as_millis().to_string()));
        let ended = tokio::task::spawn_blocking(move || command.output()).await;
        let output = ended.map_err(std::io::Error::other).and_then(|output| output).doing(|| "running Rows.java".to_owned())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<u64> = said.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect();
        match *numbers.as_slice() {
            [rows, millis] if output.status.success() => Ok(Written { rows, took: Duration::from_millis(millis) }),
            _ => Err(Failure::Side(format!("Rows.java said {said:?}: {}", String::from_utf8_lossy(&output.stderr)))),
        }
    }
}

fn failed(what: &'static str) -> impl FnOnce(GatewayError) -> Failure {
    move |error| Failure::Side(format!("{what} in HBase: {error}"))
}

/// How rows are written.
#[derive(Clone, Debug)]
pub struct Writing {
    /// Calls under way, each on a connection of its own.
    pub connections: usize,
    /// Of each call.
    pub shape: PutShape,
    /// The table's rows are spread over so many.
    pub partitions: u16,
    /// Not measured, before it.
    pub warm_up: Duration,
    pub time: Duration,
}
