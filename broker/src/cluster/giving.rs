//! The balancer's work where brokers share the store: partitions go to brokers that are there, anew when brokers come and go.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{CoordinationError, NodeKind, SharedCoordinator, Watched};
use tokio::time::Instant;
use uuid::Uuid;

use super::assignment::Assignment;
use super::balancer::read_record;
use super::grace::{Grace, Presence};
use super::members::Members;
use super::spreading::{Spread, spread};
use crate::catalog::QueueState;
use crate::paths;

/// What stands in the balancer's node while it is switched off; whatever else stands there, it is on.
pub const SWITCHED_OFF: &[u8] = b"off";

/// So many assignments are written at once.
const CONCURRENT_WRITES: usize = 32;

/// A queue's assignment as it was read.
struct Read {
    uid: Uuid,
    /// `None`: there is none yet.
    version: Option<i32>,
}

/// Gives out what has to be given out. Returns when to look again although nothing has changed.
pub(super) async fn give_out(
    coordinator: &SharedCoordinator,
    members: &Members,
    watched: &mut Watched,
    grace: &mut Grace,
) -> Result<Option<Instant>, CoordinationError> {
    let ended = |_| CoordinationError::Closed;
    let names = watched.children(paths::QUEUES).await.map_err(ended)?.unwrap_or_default();
    for name in &names {
        watched.expect_node(&paths::queue(name));
        watched.expect_node(&paths::assignment(name));
    }
    let switch = watched.node(paths::BALANCER).await.map_err(ended)?;
    let is_even = switch.is_none_or(|node| node.payload != SWITCHED_OFF);
    let (mut queues, mut read) = (Vec::new(), BTreeMap::new());
    for name in names {
        let node = watched.node(&paths::queue(&name)).await.map_err(ended)?;
        let assigned = watched.node(&paths::assignment(&name)).await.map_err(ended)?;
        // Whoever serves the queue says what is wrong with a node that cannot be read.
        let Some(record) = node.as_ref().and_then(read_record).filter(|record| record.state != QueueState::Dropping) else {
            continue;
        };
        let assignment = assigned.as_ref().map(|node| Assignment::from_payload(&node.payload, record.partitions)).transpose();
        let Ok(assignment) = assignment else { continue };
        read.insert(name.clone(), Read { uid: record.uid, version: assigned.map(|node| node.version) });
        queues.push(Spread { name, partitions: record.partitions, assignment });
    }
    let holders: BTreeSet<String> =
        queues.iter().filter_map(|queue| queue.assignment.as_ref()).flat_map(|given| given.counts().into_keys()).collect();
    let there: BTreeMap<String, Presence> = members.brokers().iter().map(|(name, info)| (name.clone(), info.presence)).collect();
    let again = grace.seen(&there, &holders, Instant::now());
    if queues.iter().any(|queue| queue.assignment.is_none()) {
        grace.all_come();
    }
    let changes = spread(&queues, grace.counted(), is_even);
    let writes = changes.into_iter().map(|(name, assignment)| {
        let read = read.get(&name);
        async move {
            match read {
                Some(read) => write(coordinator, &name, &assignment, read).await,
                None => Ok(()),
            }
        }
    });
    let written: Vec<_> = stream::iter(writes).buffer_unordered(CONCURRENT_WRITES).collect().await;
    written.into_iter().collect::<Result<(), _>>()?;
    Ok(again)
}

async fn write(
    coordinator: &SharedCoordinator,
    name: &str,
    assignment: &Assignment,
    read: &Read,
) -> Result<(), CoordinationError> {
    let path = paths::assignment(name);
    let payload = assignment.to_payload();
    let written = match read.version {
        Some(version) => coordinator.set(&path, &payload, Some(version)).await.map(drop),
        None => {
            // What was seen may be old: a queue made anew since then may have another number of partitions.
            let now = coordinator.get(&paths::queue(name)).await?;
            if now.as_ref().and_then(read_record).is_none_or(|now| now.uid != read.uid) {
                return Ok(());
            }
            coordinator.create(&path, &payload, NodeKind::Persistent).await.map(drop)
        }
    };
    match written {
        Ok(()) => {
            tracing::info!(queue = name, brokers = ?assignment.counts(), "assigned");
            Ok(())
        }
        // Somebody was faster, or the queue is gone: that is seen, and looked at.
        Err(CoordinationError::BadVersion { .. } | CoordinationError::NodeExists(_) | CoordinationError::NoNode(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
