//! `hqueue broker`

use std::time::Duration;

use clap::Args;
use hqueue_broker::Coordination;
use hqueue_coordination::zookeeper::{MAX_SESSION_TIMEOUT, MIN_SESSION_TIMEOUT, ZooKeeperOptions};

use super::serving::Serving;
use crate::connection::{UserAndPassword, user_and_password};
use crate::failure::Failure;
use crate::values;

/// Run one broker of several, which meet in ZooKeeper.
///
/// Partitions are given to the brokers that are there when a queue is made. Messages are kept by the broker that has the partition, in its
/// data folder: while it is away its partitions are offline. With --store hbase they are in HBase, and partitions go to other brokers when
/// one comes or goes. SIGTERM and SIGINT stop it in order; a second one ends it at once.
#[derive(Args, Debug)]
pub(crate) struct Broker {
    /// Where ZooKeeper is, and below which node everything stands: HOST:PORT[,HOST:PORT][/ROOT]. The root is made if it is not there.
    #[arg(long, value_name = "HOSTS[/ROOT]", value_parser = zookeeper)]
    zookeeper: ZooKeeperOptions,
    /// How long ZooKeeper keeps a session that it does not hear of. Within this time a broker that is cut off stops acting; for so long
    /// the others wait for one that died. 3 s or more; ZooKeeper may shorten or lengthen it.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::length(MIN_SESSION_TIMEOUT, MAX_SESSION_TIMEOUT))]
    session_timeout: Duration,
    /// USER:PASSWORD for ZooKeeper (digest); nodes that are made then belong to that user. Better given by the variable than here.
    #[arg(long, value_name = "USER:PASSWORD", env = "HQUEUE_ZOOKEEPER_AUTH", hide_env_values = true, value_parser = user_and_password)]
    zookeeper_auth: Option<UserAndPassword>,
    /// The address that clients and other brokers are told, if they do not reach it where it listens.
    #[arg(long, value_name = "HOST:PORT", value_parser = values::address)]
    advertise: Option<String>,
    #[command(flatten)]
    serving: Serving,
}

fn zookeeper(text: &str) -> Result<ZooKeeperOptions, String> {
    ZooKeeperOptions::parse(text).map_err(|error| error.to_string())
}

impl Broker {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let zookeeper = ZooKeeperOptions {
            session_timeout: self.session_timeout,
            auth: self.zookeeper_auth.map(|UserAndPassword(user, password)| (user, password)),
            ..self.zookeeper
        };
        self.serving.run(Coordination::ZooKeeper(zookeeper), self.advertise).await
    }
}
