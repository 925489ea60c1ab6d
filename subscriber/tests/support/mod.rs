//! A broker in the test's own process, in a folder of its own.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::SocketAddr;
use std::time::Duration;

use hqueue::{HQueue, Queue, QueueSpec};
use hqueue_broker::{Options, Standalone};
use tempfile::TempDir;

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// A broker that can be stopped and started again at the same address.
pub struct Broker {
    folder: TempDir,
    running: Option<Standalone>,
    address: SocketAddr,
}

impl Broker {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let running = run(&folder, ([127, 0, 0, 1], 0).into()).await;
        let address = running.address();
        Self { folder, running: Some(running), address }
    }

    pub fn url(&self) -> String {
        format!("hqueue://{}", self.address)
    }

    pub async fn connect(&self) -> HQueue {
        HQueue::connect(&self.url()).await.unwrap()
    }

    /// A new queue, by a connection of its own.
    pub async fn queue(&self, name: &str, partitions: i32) -> Queue {
        let hqueue = self.connect().await;
        let spec = QueueSpec { name: name.to_owned(), partitions, ttl_seconds: 3600, ..QueueSpec::default() };
        hqueue.admin().create_queue(&spec).await.unwrap();
        hqueue.queue(name).unwrap()
    }

    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    pub async fn start_again(&mut self) {
        self.running = Some(run(&self.folder, self.address).await);
    }
}

async fn run(folder: &TempDir, listen: SocketAddr) -> Standalone {
    let options = Options { data: folder.path().to_owned(), listen, http: None, ..Options::default() };
    Standalone::start(options).await.unwrap()
}

/// Waits until it is so.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
