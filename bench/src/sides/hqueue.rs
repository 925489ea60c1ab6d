//! Starts HQueue's release binary and sets it up.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use super::process::{Process, free_port, wait_for_port};
use super::{Places, Running, Setup};
use crate::driver::Admin;
use crate::failure::{Doing, Outcome};
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
    let process = spawn(places, program, &data, address, durability)?;
    let mut running = Running { process, others: Vec::new(), clients: Vec::new(), address, data, site: None };
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
    let args: [OsString; 9] = [
        "standalone".into(),
        "--data".into(),
        data.into(),
        "--listen".into(),
        address.to_string().into(),
        "--http".into(),
        free_port()?.to_string().into(),
        "--durability".into(),
        durability.name().into(),
    ];
    let args: Vec<_> = args.iter().map(OsString::as_os_str).collect();
    Process::start(program, &args, places.data.join("hqueue.out"))
}

/// A broker with queues and subscribers of everything.
pub(super) async fn start_with(places: &Places, program: &Path, setup: &Setup) -> Outcome<Running> {
    let running = start(places, program, setup.durability).await?;
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
