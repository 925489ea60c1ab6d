//! A client that must not notice what is done to the broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::{THQueueAdminServiceSyncClient, THQueueServiceSyncClient};

use crate::broker::Broker;
use crate::gateway::{everything, put_for_ids, scan};
use crate::message::to_put;
use crate::wait::{PATIENCE, wait};

/// Puts and reads back in a thread until it is asked how that went.
#[derive(Debug)]
pub struct Healthy {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    thread: JoinHandle<Result<Duration, String>>,
}

impl Healthy {
    /// Starts the thread, with a queue `healthy` of its own.
    ///
    /// # Panics
    /// If the queue cannot be made.
    #[must_use]
    pub fn start(broker: &Broker) -> Self {
        broker.create("healthy", 1);
        let (mut gateway, mut admin) = (broker.gateway(), broker.admin());
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            let mut slowest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                let round = counted.load(Ordering::Relaxed);
                let message = to_put("t", round.to_string());
                let (_, ids) = put_for_ids(&mut gateway, "healthy", 0, vec![message]).map_err(|e| format!("put {round}: {e}"))?;
                let from = hqueue_protocol::generated::TMessageScan { start_i_d: Some(ids[0].into()), ..everything() };
                let found = scan(&mut gateway, "healthy", 0, from).map_err(|e| format!("scan {round}: {e}"))?;
                if found.len() != 1 || found[0].id != ids[0] {
                    return Err(format!("scan {round} found {found:?}"));
                }
                gateway.get_queue_locations("healthy".into()).map_err(|e| format!("locations {round}: {e}"))?;
                admin.cluster_status().map_err(|e| format!("status {round}: {e}"))?;
                slowest = slowest.max(began.elapsed());
                counted.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(slowest)
        });
        let healthy = Self { stop, rounds, thread };
        // What it needs of the broker is there from now on: files, connections.
        wait("the healthy client's first round", PATIENCE, || healthy.rounds() > 0 || healthy.thread.is_finished());
        healthy
    }

    /// Rounds so far.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Ends it; returns its slowest round.
    ///
    /// # Panics
    /// If anything went wrong for it.
    #[track_caller]
    pub fn finish(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join().expect("the healthy client does not panic") {
            Ok(slowest) => slowest,
            Err(error) => panic!("the healthy client has noticed: {error}"),
        }
    }
}
