//! A side that runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Places, Process, Usage, descendants, hqueue};
use crate::failure::Outcome;
use crate::peers::Site;
use crate::setting::Durability;

/// What a side is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub durability: Durability,
    pub queues: u16,
    /// Of each queue.
    pub partitions: u16,
    /// Subscribers of everything to which a side pushes: the addresses of each.
    pub subscribers: Vec<Vec<SocketAddr>>,
}

/// A side that runs and can be put to. Ended, and its data removed, when dropped.
#[derive(Debug)]
pub struct Running {
    /// The one that serves clients.
    pub process: Process,
    /// What it needs beside it.
    pub others: Vec<Process>,
    /// The side's own client, where it cannot be in the driver.
    pub clients: Vec<Process>,
    /// Processes that serve the side and that somebody else started.
    pub beside: Vec<u32>,
    pub address: SocketAddr,
    pub(crate) data: PathBuf,
    /// Where a peer was started again.
    pub(crate) site: Option<Site>,
}

impl Running {
    /// What all processes of the side have used so far.
    pub fn usage(&mut self) -> Outcome<Usage> {
        let mut all = self.process.usage()?;
        for process in &mut self.others {
            all = all.and(process.usage()?);
        }
        for id in &self.beside {
            all = all.and(Usage::of(*id)?);
        }
        Ok(all)
    }

    /// What clients outside of the driver have used so far.
    pub fn client_usage(&mut self) -> Outcome<Usage> {
        self.clients.iter_mut().try_fold(Usage::default(), |all, client| Ok(all.and(client.usage()?)))
    }

    /// An error if one of the processes has ended.
    pub fn check(&mut self) -> Outcome<()> {
        self.process.check()?;
        self.others.iter_mut().chain(&mut self.clients).try_for_each(Process::check)
    }

    /// The ids of all processes of the side.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let own = self.others.iter().chain([&self.process]).map(Process::id);
        own.flat_map(|id| descendants(id).into_iter().chain([id])).collect()
    }

    /// Ends all processes, the one that serves clients first.
    pub(crate) async fn stop_all(&mut self, in_order: bool) -> Outcome<()> {
        for process in [&mut self.process].into_iter().chain(&mut self.others).chain(&mut self.clients) {
            if in_order {
                process.stop().await?;
            } else {
                process.kill()?;
            }
        }
        self.clients.clear();
        Ok(())
    }

    /// Ends the broker as a crash would, starts it again on the same data and returns at once.
    pub fn restart(&mut self, places: &Places, durability: Durability) -> Outcome<()> {
        self.process.kill()?;
        self.process = hqueue::spawn(places, &places.hqueue, &self.data, self.address, durability)?;
        Ok(())
    }

    /// Stops the broker in order, starts it again on the same data and returns at once.
    pub async fn restart_in_order(&mut self, places: &Places, durability: Durability) -> Outcome<()> {
        self.process.stop().await?;
        self.process = hqueue::spawn(places, &places.hqueue, &self.data, self.address, durability)?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Removing files under a process that writes them may fail, so it goes first; a failure of either is seen in the output.
        for process in self.clients.iter_mut().chain([&mut self.process]).chain(&mut self.others) {
            if let Err(failure) = process.kill() {
                eprintln!("{failure}");
            }
        }
        if let Err(error) = std::fs::remove_dir_all(&self.data) {
            eprintln!("removing {}: {error}", self.data.display());
        }
    }
}
