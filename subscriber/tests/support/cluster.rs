//! A ZooKeeper, brokers that meet there, and a session of the test's own to look at the nodes.

use std::sync::Arc;
use std::time::Duration;

use hqueue::{ConnectOptions, HQueue, Queue, QueueSpec};
use hqueue_broker::Coordination;
use hqueue_coordination::zookeeper::{ZooKeeperCoordinator, ZooKeeperOptions};
use hqueue_coordination::{Node, SharedCoordinator};
use hqueue_tests::zookeeper::ZooKeeper;

use super::{Broker, PATIENCE, eventually};

/// Short, so that tests need not wait long; longer than a busy machine delays a heartbeat.
pub const SESSION: Duration = Duration::from_secs(6);

/// The only queue.
pub const QUEUE: &str = "q";

pub struct Cluster {
    pub zookeeper: ZooKeeper,
    pub brokers: Vec<Broker>,
    pub nodes: SharedCoordinator,
}

impl Cluster {
    pub async fn start(brokers: usize) -> Self {
        let zookeeper = tokio::task::spawn_blocking(ZooKeeper::start).await.unwrap();
        let nodes = session(&zookeeper).await;
        let mut cluster = Self { zookeeper, brokers: Vec::new(), nodes };
        for _ in 0..brokers {
            cluster.add_broker().await;
        }
        cluster
    }

    pub async fn add_broker(&mut self) {
        self.brokers.push(Broker::start_in(Coordination::ZooKeeper(options(&self.zookeeper))).await);
    }

    pub fn url(&self) -> String {
        format!("zk://{}", self.zookeeper.host())
    }

    pub async fn connect(&self) -> HQueue {
        let options = ConnectOptions { session_timeout: SESSION, connect_timeout: PATIENCE, ..ConnectOptions::default() };
        HQueue::connect_with(&self.url(), options).await.unwrap()
    }

    pub async fn create_queue(&self, hqueue: &HQueue, partitions: i32) -> Queue {
        let spec = QueueSpec { name: QUEUE.to_owned(), partitions, ttl_seconds: 3600, ..QueueSpec::default() };
        hqueue.admin().create_queue(&spec).await.unwrap();
        hqueue.queue(QUEUE).unwrap()
    }

    /// A node of subscriber `s` in a partition: `address`, `topics`.
    pub async fn node(&self, partition: i16, name: &str) -> Option<Node> {
        self.nodes.get(&path(partition, name)).await.unwrap()
    }

    /// What is registered for `s` in a partition.
    pub async fn registered(&self, partition: i16) -> Vec<String> {
        self.nodes.children(&format!("/queues/{QUEUE}/{partition}/s")).await.unwrap().unwrap_or_default()
    }

    /// Waits until subscriber `s` has these nodes in a partition, and no others.
    pub async fn wait_for_nodes(&self, partition: i16, names: &[&str]) {
        eventually(&format!("nodes {names:?}"), || async { self.registered(partition).await == names }).await;
    }

    pub async fn stop(mut self) {
        for broker in &mut self.brokers {
            broker.stop().await;
        }
        self.nodes.close().await;
    }
}

pub fn path(partition: i16, name: &str) -> String {
    format!("/queues/{QUEUE}/{partition}/s/{name}")
}

pub fn options(zookeeper: &ZooKeeper) -> ZooKeeperOptions {
    let options = ZooKeeperOptions::parse(&zookeeper.host()).unwrap();
    ZooKeeperOptions { session_timeout: SESSION, ..options }
}

/// A further session.
pub async fn session(zookeeper: &ZooKeeper) -> SharedCoordinator {
    let coordinator = ZooKeeperCoordinator::start(options(zookeeper));
    coordinator.connected(PATIENCE).await.unwrap();
    Arc::new(coordinator)
}
