//! A broker in the test's own process, in a folder of its own; with a ZooKeeper, if the test wants one.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod cluster;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hqueue::{HQueue, Message, Queue, QueueSpec};
use hqueue_broker::{Coordination, Options};
use tempfile::TempDir;

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// A broker that can be stopped and started again at the same address.
pub struct Broker {
    folder: TempDir,
    running: Option<hqueue_broker::Broker>,
    coordination: Coordination,
    address: SocketAddr,
}

impl Broker {
    pub async fn start() -> Self {
        Self::start_in(Coordination::Embedded).await
    }

    pub async fn start_in(coordination: Coordination) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let running = run(&folder, ([127, 0, 0, 1], 0).into(), coordination.clone()).await;
        let address = running.address();
        Self { folder, running: Some(running), address, coordination }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
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
        self.running = Some(run(&self.folder, self.address, self.coordination.clone()).await);
    }
}

async fn run(folder: &TempDir, listen: SocketAddr, coordination: Coordination) -> hqueue_broker::Broker {
    let options = Options { data: folder.path().to_owned(), listen, http: None, coordination, ..Options::default() };
    hqueue_broker::Broker::start(options).await.unwrap()
}

/// Waits until it is so.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Values that a listener has got.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub fn listener(&self) -> impl Fn(&Message) -> Result<(), String> + use<> {
        let seen = Arc::clone(&self.0);
        move |message| {
            seen.lock().unwrap().push(String::from_utf8(message.value.to_vec()).unwrap());
            Ok(())
        }
    }

    pub fn values(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub async fn wait_for(&self, values: &[&str]) {
        eventually(&format!("{values:?}"), || async { self.values() == values }).await;
    }
}
