//! Starts HQueue's release binary and sets it up.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::process::{Process, free_port, wait_for_port};
use super::{Places, Running, Setup};
use crate::driver::Admin;
use crate::failure::{Doing, Failure, Outcome};
use crate::hbase::NAMESPACE;
use crate::setting::Durability;

/// The queues of every measurement, by their number.
#[must_use]
pub fn queue_name(number: u16) -> String {
    format!("bench{number}")
}

const SUBSCRIBER: &str = "receiver";

pub(super) async fn start(places: &Places, program: &Path, durability: Durability) -> Outcome<Running> {
    let data = places.data.join("hqueue");
    std::fs::create_dir_all(&data).doing(|| format!("making {}", data.display()))?;
    let address = free_port()?;
    serving(spawn(places, program, &data, address, durability)?, address, data).await
}

async fn serving(process: Process, address: SocketAddr, data: PathBuf) -> Outcome<Running> {
    let (others, clients, beside) = (Vec::new(), Vec::new(), Vec::new());
    let mut running = Running { process, others, clients, beside, address, data, site: None };
    wait_for_port(&mut running.process, address).await?;
    Ok(running)
}

pub(super) fn spawn(
    places: &Places,
    program: &Path,
    data: &Path,
    address: SocketAddr,
    durability: Durability,
) -> Outcome<Process> {
    let class = ["--durability".into(), durability.name().into()];
    spawn_with(places, program, data, address, &class)
}

fn spawn_with(places: &Places, program: &Path, data: &Path, address: SocketAddr, more: &[OsString]) -> Outcome<Process> {
    let args: [OsString; 7] = [
        "standalone".into(),
        "--data".into(),
        data.into(),
        "--listen".into(),
        address.to_string().into(),
        "--http".into(),
        free_port()?.to_string().into(),
    ];
    let args: Vec<_> = args.iter().chain(more).map(OsString::as_os_str).collect();
    Process::start(program, &args, places.data.join("hqueue.out"))
}

/// A broker with queues and subscribers of everything.
pub(super) async fn start_with(places: &Places, program: &Path, setup: &Setup) -> Outcome<Running> {
    let running = start(places, program, setup.durability).await?;
    set_up(running.address, setup).await?;
    Ok(running)
}

/// The same with messages in HBase.
pub(super) async fn start_in_hbase(places: &Places, setup: &Setup) -> Outcome<Running> {
    let Some(hbase) = &places.hbase else {
        return Err(Failure::Usage("no HBase was named".to_owned()));
    };
    let data = places.data.join("hqueue-in-hbase");
    std::fs::create_dir_all(&data).doing(|| format!("making {}", data.display()))?;
    let address = free_port()?;
    let flags = ["--store", "hbase", "--hbase", &hbase.gateway, "--hbase-namespace", NAMESPACE].map(OsString::from);
    let process = spawn_with(places, &places.hqueue, &data, address, &flags)?;
    let mut running = serving(process, address, data).await?;
    running.beside = hbase.ids()?;
    set_up(running.address, setup).await?;
    Ok(running)
}

/// The queues; the subscribers, of all of each.
pub(super) async fn set_up(broker: SocketAddr, setup: &Setup) -> Outcome<()> {
    let mut admin = Admin::connect(broker).await?;
    for queue in (0..setup.queues).map(queue_name) {
        admin.create_queue(&queue, setup.partitions).await?;
        for (number, addresses) in setup.subscribers.iter().enumerate() {
            admin.subscribe(&queue, &format!("{SUBSCRIBER}{number}"), Vec::new(), addresses).await?;
        }
    }
    Ok(())
}
