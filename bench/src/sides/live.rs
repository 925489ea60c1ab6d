//! A side with subscribers that listen to it, whatever its client is.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::{Places, Running, Setup, Side, sdk};
use crate::driver::{Ages, Clock, FrameLink, Intake, Link, Load, Producers, Receiver};
use crate::failure::{Doing, Outcome};
use crate::messages::Ledger;
use crate::peers::{self, Hearing};
use crate::setting::Durability;

/// What a side is started for.
#[derive(Clone, Debug)]
pub struct Plan {
    pub durability: Durability,
    pub load: Load,
    /// Subscribers of everything.
    pub subscribers: usize,
    /// Ports of each subscriber, where a side pushes to ports.
    pub endpoints: usize,
    pub ages: Ages,
}

/// What listens, held so that it goes on; it ends when dropped.
#[derive(Debug)]
enum Ear {
    Port { _receiver: Receiver },
    Client { _client: Hearing },
}

/// A side that runs, and its subscribers.
#[derive(Debug)]
pub struct Live {
    side: Side,
    /// One a subscriber.
    pub intakes: Vec<Arc<Intake>>,
    _ears: Vec<Ear>,
    pub running: Running,
    clock: Clock,
}

/// Waits until the disk is done with what the side before has written and removed. A file system that is mounted with `discard` tells
/// the disk of what was freed when its journal is written, so one more write of the journal is waited for.
fn settle(data: &Path) -> Outcome<()> {
    rustix::fs::sync();
    let path = data.join("settled");
    let written = File::create(&path).and_then(|file| file.sync_all());
    written.and_then(|()| std::fs::remove_file(&path)).doing(|| format!("writing {}", path.display()))
}

impl Live {
    pub async fn start(side: Side, places: &Places, plan: &Plan) -> Outcome<Self> {
        settle(&places.data)?;
        let clock = Clock::start();
        let (producers, partitions) = (plan.load.producers as usize, usize::from(plan.load.all_partitions()));
        let intake = || Arc::new(Intake::new(Ledger::new(producers, partitions), clock, plan.ages));
        let intakes: Vec<_> = std::iter::repeat_with(intake).take(plan.subscribers).collect();
        let mut setup = Setup {
            durability: plan.durability,
            queues: plan.load.queues,
            partitions: plan.load.partitions,
            subscribers: Vec::new(),
        };
        let mut ears = Vec::new();
        let running = match side {
            Side::Peer(peer) => {
                let (running, hearing) = peers::start(peer, places, plan, &intakes).await?;
                ears.extend(hearing.into_iter().map(|client| Ear::Client { _client: client }));
                running
            }
            Side::Sdk => {
                let running = side.start(places, &setup).await?;
                for (number, intake) in intakes.iter().enumerate() {
                    ears.push(Ear::Client { _client: sdk::consume(running.address, &plan.load, number, intake).await? });
                }
                running
            }
            Side::Floor | Side::HQueue | Side::Other | Side::InHBase => {
                for intake in &intakes {
                    let receiver = Receiver::listen_for(Arc::clone(intake), plan.endpoints, side.dialect()).await?;
                    setup.subscribers.push(receiver.addresses().to_vec());
                    ears.push(Ear::Port { _receiver: receiver });
                }
                side.start(places, &setup).await?
            }
        };
        Ok(Self { side, intakes, _ears: ears, running, clock })
    }

    /// What a process of the side has said at its end, instead of what went wrong because of that.
    pub fn explained<T>(&mut self, outcome: Outcome<T>) -> Outcome<T> {
        outcome.or_else(|failure| self.running.check().and(Err(failure)))
    }

    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Connects the producers of a load.
    pub async fn producers(&self, load: &Load) -> Outcome<Producers> {
        self.producers_from(0, load).await
    }

    /// Connects the producers of a load beside others: theirs are the numbers from `first`.
    pub async fn producers_from(&self, first: u32, load: &Load) -> Outcome<Producers> {
        let mut links: Vec<Box<dyn Link>> = Vec::new();
        for _ in 0..load.producers {
            links.push(match self.side {
                Side::Peer(peer) => peers::connect(peer, &self.running, load).await?,
                Side::Sdk => sdk::connect(self.running.address, load).await?,
                side => Box::new(FrameLink::connect(self.running.address, side.dialect(), load).await?),
            });
        }
        Ok(Producers::over(links, first, load, self.clock))
    }
}
