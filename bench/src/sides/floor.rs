//! Starts the floor.

use std::ffi::OsString;

use super::process::{Process, free_port, wait_for_port};
use super::{Places, Running, Setup};
use crate::failure::{Doing, Failure, Outcome};

pub(super) async fn start(places: &Places, setup: &Setup) -> Outcome<Running> {
    let data = places.data.join("floor");
    std::fs::create_dir_all(&data).doing(|| format!("making {}", data.display()))?;
    let address = free_port()?;
    let receiver = setup
        .subscribers
        .first()
        .and_then(|addresses| addresses.first())
        .ok_or_else(|| Failure::Usage("the floor needs a receiver".to_owned()))?;
    let args: [OsString; 11] = [
        "floor".into(),
        "--listen".into(),
        address.to_string().into(),
        "--data".into(),
        data.clone().into(),
        "--receiver".into(),
        receiver.to_string().into(),
        "--durability".into(),
        setup.durability.name().into(),
        "--partitions".into(),
        setup.partitions.to_string().into(),
    ];
    let args: Vec<_> = args.iter().map(OsString::as_os_str).collect();
    let process = Process::start(&places.bench, &args, places.data.join("floor.out"))?;
    let mut running = Running { process, others: Vec::new(), clients: Vec::new(), beside: Vec::new(), address, data, site: None };
    wait_for_port(&mut running.process, address).await?;
    Ok(running)
}
