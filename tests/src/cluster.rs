//! Several brokers that meet in a real ZooKeeper.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use hqueue_protocol::generated::THQueueAdminServiceSyncClient;

use crate::broker::{Broker, Meeting, Setup};
use crate::hand::{Hand, Registered};
use crate::message::Message;
use crate::wait::{PATIENCE, wait};
use crate::zookeeper::ZooKeeper;

/// The session timeout of brokers, unless a test says otherwise: a busy machine ends no session of this length by itself.
pub const SESSION: &str = "10s";

/// The shortest session timeout there is: for tests that wait until a broker's session has ended.
pub const SHORT: &str = "3s";

/// A server that no test harms. It ends with this process.
pub fn shared_zookeeper() -> &'static ZooKeeper {
    static SERVER: OnceLock<ZooKeeper> = OnceLock::new();
    SERVER.get_or_init(ZooKeeper::start)
}

/// A root that no other test uses.
#[must_use]
pub fn fresh_root() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("/cluster-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Brokers with a root of their own. They end with the value.
#[derive(Debug)]
pub struct Cluster {
    /// `HOST:PORT/root` of the server itself, whatever way the brokers take.
    zookeeper: String,
    /// Of every broker.
    flags: Vec<String>,
    pub brokers: Vec<Broker>,
    /// An administrator's session.
    pub hand: Hand,
}

impl Cluster {
    /// Starts so many brokers.
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn start(brokers: usize) -> Self {
        Self::with_session(brokers, SESSION)
    }

    /// The same with another session timeout.
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn with_session(brokers: usize, session_timeout: &str) -> Self {
        Self::on(&shared_zookeeper().host(), brokers, session_timeout)
    }

    /// The same on a server of one's own (`host:port`).
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn on(server: &str, brokers: usize, session_timeout: &str) -> Self {
        let zookeeper = format!("{server}{}", fresh_root());
        let ways = vec![zookeeper.clone(); brokers];
        Self::by(zookeeper, ways, session_timeout)
    }

    /// Brokers each of which reaches ZooKeeper by a way of its own, `HOST:PORT/root`; `zookeeper` is the hand's.
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn by(zookeeper: String, ways: Vec<String>, session_timeout: &str) -> Self {
        Self::with_flags(zookeeper, ways, session_timeout, Vec::new())
    }

    /// Brokers that keep messages in HBase, behind these gateways, in a namespace of their own.
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn in_hbase(brokers: usize, session_timeout: &str, gateways: &str) -> Self {
        Self::in_hbase_on(&shared_zookeeper().host(), brokers, session_timeout, gateways)
    }

    /// The same on a ZooKeeper of one's own (`host:port`).
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn in_hbase_on(server: &str, brokers: usize, session_timeout: &str, gateways: &str) -> Self {
        Self::in_hbase_by(server, vec![server.to_owned(); brokers], session_timeout, gateways)
    }

    /// The same for brokers each of which reaches ZooKeeper by a way of its own (`host:port`).
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn in_hbase_by(server: &str, ways: Vec<String>, session_timeout: &str, gateways: &str) -> Self {
        let (root, brokers) = (fresh_root(), ways.len());
        let namespace = root.trim_start_matches('/').replace('-', "_");
        let zookeeper = format!("{server}{root}");
        let ways = ways.into_iter().map(|way| format!("{way}{root}")).collect();
        let flags = ["--store", "hbase", "--hbase", gateways, "--hbase-namespace", &namespace];
        let cluster = Self::with_flags(zookeeper, ways, session_timeout, flags.map(str::to_owned).to_vec());
        wait("all doors are open", PATIENCE, || {
            let nodes = cluster.hand.children("/brokers");
            nodes.len() == brokers
                && nodes.iter().all(|name| !cluster.hand.text(&format!("/brokers/{name}")).contains("starting"))
        });
        cluster
    }

    fn with_flags(zookeeper: String, ways: Vec<String>, session_timeout: &str, flags: Vec<String>) -> Self {
        let prepared = |way: String| Broker::prepared(setup(&way, session_timeout, &flags));
        let mut brokers: Vec<Broker> = ways.into_iter().map(prepared).collect();
        brokers.iter_mut().for_each(Broker::launch);
        let hand = Hand::at(&zookeeper);
        brokers.iter_mut().for_each(Broker::wait_until_it_serves);
        let cluster = Self { zookeeper, flags, brokers, hand };
        cluster.wait_until_complete();
        cluster
    }

    /// Starts one more broker.
    ///
    /// # Panics
    /// If it does not serve.
    pub fn add(&mut self) {
        self.add_as(setup(&self.zookeeper, SESSION, &self.flags));
    }

    /// Starts one more broker with the shortest session, behind what a shell does before (see [`Setup::before`]).
    ///
    /// # Panics
    /// If it does not serve.
    pub fn add_behind(&mut self, before: &str) {
        self.add_as(Setup { before: Some(before.to_owned()), ..setup(&self.zookeeper, SHORT, &self.flags) });
    }

    fn add_as(&mut self, setup: Setup) {
        self.brokers.push(Broker::with(setup));
        self.wait_until_complete();
    }

    /// Waits until every broker that runs knows of every other, and one of them is the balancer.
    ///
    /// # Panics
    /// If that does not come.
    #[track_caller]
    pub fn wait_until_complete(&self) {
        let running: Vec<&Broker> = self.brokers.iter().filter(|b| b.is_running()).collect();
        wait("all brokers know of each other", PATIENCE, || {
            running.iter().all(|broker| {
                let Ok(status) = broker.try_admin().and_then(|mut admin| admin.cluster_status()) else { return false };
                let brokers = status.brokers.unwrap_or_default();
                let online = brokers.iter().filter(|b| b.state.as_deref() == Some("online")).count();
                online == running.len() && brokers.iter().any(|b| b.balancer == Some(true))
            })
        });
    }

    /// Where the brokers meet: `HOST:PORT/root`.
    #[must_use]
    pub fn zookeeper(&self) -> &str {
        &self.zookeeper
    }

    /// A further session there: a subscriber's.
    #[must_use]
    pub fn session(&self) -> Hand {
        Hand::at(&self.zookeeper)
    }

    /// Registers a subscriber for all messages, in the administrator's session.
    #[track_caller]
    pub fn register(&self, queue: &str, partitions: i16, name: &str, address: &str) {
        self.hand.register(Registered::new(queue, partitions, name, address));
    }

    /// The name of a broker.
    ///
    /// # Panics
    /// If it was never started.
    #[must_use]
    pub fn name(&self, broker: usize) -> String {
        let name = std::fs::read_to_string(self.brokers[broker].data().join("broker-name"));
        name.expect("a broker that was started has a name").trim().to_owned()
    }

    /// Which of the brokers each partition is given to.
    ///
    /// # Panics
    /// If one is given to none of them.
    #[track_caller]
    #[must_use]
    pub fn assigned(&self, queue: &str) -> Vec<usize> {
        let names: Vec<String> = (0..self.brokers.len()).map(|n| self.name(n)).collect();
        let assignment = self.hand.json(&format!("/queues/{queue}/assignment"));
        let mut owners = BTreeMap::new();
        for (name, ranges) in assignment["brokers"].as_object().expect("brokers") {
            let broker = names.iter().position(|n| n == name).expect("a broker of this cluster");
            for range in ranges.as_str().expect("ranges").split(',') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let number = |text: &str| text.parse::<usize>().expect("a partition");
                owners.extend((number(first)..=number(last)).map(|p| (p, broker)));
            }
        }
        owners.into_values().collect()
    }

    /// Waits until every partition of the queue is owned by the broker that it is given to.
    ///
    /// # Panics
    /// If that does not come.
    #[track_caller]
    pub fn wait_until_owned(&self, queue: &str, partitions: i16) {
        wait("every partition has its owner", PATIENCE, || {
            let assigned = self.assigned(queue);
            (0..partitions).zip(assigned).all(|(p, broker)| self.owner(queue, p) == Some(broker))
        });
    }

    /// Waits until each of these brokers has as many partitions as the others, or one more.
    ///
    /// # Panics
    /// If that does not come.
    #[track_caller]
    pub fn wait_until_even(&self, queue: &str, partitions: i16, brokers: &[usize]) {
        wait("all have their share", PATIENCE, || {
            let owners: Vec<Option<usize>> = (0..partitions).map(|p| self.owner(queue, p)).collect();
            let counts: Vec<usize> = brokers.iter().map(|b| owners.iter().filter(|o| **o == Some(*b)).count()).collect();
            let all: usize = counts.iter().sum();
            all == owners.len() && counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0) <= 1
        });
    }

    /// Which of the brokers owns a partition; `None`: nobody at this moment, or one that is none of these.
    ///
    /// # Panics
    /// If the owner's node cannot be read.
    #[must_use]
    pub fn owner(&self, queue: &str, partition: i16) -> Option<usize> {
        let node = self.hand.get(&format!("/queues/{queue}/{partition}/owner"))?;
        let owner: serde_json::Value = serde_json::from_slice(&node.payload).expect("the owner's node is JSON");
        (0..self.brokers.len()).find(|n| owner["broker"] == self.name(*n).as_str())
    }

    /// A partition of the queue that is given to this broker.
    ///
    /// # Panics
    /// If it has none.
    #[track_caller]
    #[must_use]
    pub fn partition_of(&self, queue: &str, broker: usize) -> i16 {
        let place = self.assigned(queue).iter().position(|b| *b == broker).expect("the broker has a partition");
        i16::try_from(place).expect("a partition")
    }

    /// The session that holds a partition's owner node.
    #[must_use]
    pub fn owner_session(&self, queue: &str, partition: i16) -> Option<i64> {
        self.hand.get(&format!("/queues/{queue}/{partition}/owner"))?.owner_session
    }

    /// Everything in a queue, as the first broker that runs reads it.
    ///
    /// # Panics
    /// If a partition cannot be read.
    #[track_caller]
    #[must_use]
    pub fn scan_all(&self, queue: &str, partitions: i16) -> Vec<Message> {
        let broker = self.brokers.iter().find(|b| b.is_running()).expect("a broker runs");
        (0..partitions).flat_map(|p| broker.scan(queue, p)).collect()
    }
}

fn setup(zookeeper: &str, session_timeout: &str, flags: &[String]) -> Setup {
    let meeting = Meeting { zookeeper: zookeeper.to_owned(), session_timeout: session_timeout.to_owned() };
    Setup { meeting: Some(meeting), flags: flags.to_vec(), ..Setup::default() }
}
