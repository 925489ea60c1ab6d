//! `hqueue locations`

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::{print_json, whose};
use crate::values;

/// Show which broker owns each partition of a queue, in their order.
///
/// A partition that nobody serves now stands as offline, with the name of the broker that has it. Where messages are in HBase, the region
/// server that has them stands behind the broker.
#[derive(Args, Debug)]
pub(crate) struct Locations {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Serialize)]
struct Owners {
    /// Empty texts where nobody serves the partition.
    locations: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    offline: Vec<Offline>,
    /// Where they are in HBase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    region_servers: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Offline {
    partition: i16,
    /// The name of the broker that has it; empty if none has.
    broker: String,
}

impl Locations {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let admin = self.connection.open().await?.admin();
        let locations = admin.locations(&self.queue).await?;
        let mut offline: Vec<Offline> = numbered(&locations)
            .filter(|(_, address)| address.is_empty())
            .map(|(partition, _)| Offline { partition, broker: String::new() })
            .collect();
        if !offline.is_empty() {
            let status = admin.queue_status(&self.queue).await?;
            for offline in &mut offline {
                let known = status.partitions.iter().find(|known| known.partition == offline.partition);
                offline.broker = known.map(|known| known.owner.clone()).unwrap_or_default();
            }
        }
        let in_hbase = !admin.describe_queue(&self.queue).await?.stored.is_empty();
        // Brokers are known although HBase is away.
        let region_servers = if in_hbase { admin.data_locations(&self.queue).await.unwrap_or_default() } else { Vec::new() };
        if self.connection.is_json() {
            return print_json(&Owners { locations, offline, region_servers });
        }
        let mut out = io::stdout().lock();
        for (partition, address) in numbered(&locations) {
            match offline.iter().find(|offline| offline.partition == partition) {
                Some(offline) => write!(out, "{partition} offline, {}", whose(&offline.broker))?,
                None => write!(out, "{partition} {address}")?,
            }
            let server = usize::try_from(partition).ok().and_then(|p| region_servers.get(p));
            writeln!(out, "{}", server.map(|server| format!(" {server}")).unwrap_or_default())?;
        }
        Ok(())
    }
}

fn numbered(locations: &[String]) -> impl Iterator<Item = (i16, &String)> {
    (0..).zip(locations)
}
