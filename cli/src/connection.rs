//! The flags of every command that talks to a broker.

use std::time::Duration;

use clap::{Args, ValueEnum};
use hqueue::{ConnectOptions, Error, HQueue};

use crate::failure::Failure;
use crate::shell::Session;

/// A command ends within 3 s if there is no broker.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(2500);

/// Which broker, and how its answers are shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connection {
    /// The broker, or several of which the first that answers is used: hqueue://HOST:PORT[,HOST:PORT]. Or the ZooKeeper where the brokers
    /// meet: zk://HOST:PORT[,HOST:PORT][/ROOT], the root is /hqueue unless given.
    #[arg(long, value_name = "URL", env = "HQUEUE_CONNECT", default_value = "hqueue://127.0.0.1:9190")]
    pub(crate) connect: String,
    /// USER:PASSWORD for ZooKeeper (digest), with zk:// if the brokers have one. Better given by the variable than here.
    #[arg(long, value_name = "USER:PASSWORD", env = "HQUEUE_ZOOKEEPER_AUTH", hide_env_values = true, value_parser = user_and_password)]
    pub(crate) zookeeper_auth: Option<UserAndPassword>,
    /// How data is printed.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Not shown when the command is printed for debugging.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserAndPassword(pub(crate) String, pub(crate) String);

impl std::fmt::Debug for UserAndPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:...", self.0)
    }
}

/// How data stands on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, and for tools that work line by line.
    Text,
    /// One object, or one a line.
    Json,
}

impl Connection {
    /// The connection to the broker; in the shell the one that its commands share.
    pub(crate) async fn open(&self) -> Result<HQueue, Failure> {
        match Session::current().filter(|session| session.serves(self)) {
            Some(session) => session.open().await,
            None => self.make().await,
        }
    }

    /// A new connection.
    pub(crate) async fn make(&self) -> Result<HQueue, Failure> {
        let auth = self.zookeeper_auth.clone().map(|UserAndPassword(user, password)| (user, password));
        let options = ConnectOptions { connect_timeout: CONNECT_TIMEOUT, zookeeper_auth: auth, ..ConnectOptions::default() };
        HQueue::connect_with(&self.connect, options).await.map_err(|error| match error {
            Error::Invalid(reason) => Failure::Usage(reason),
            other => other.into(),
        })
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

pub(crate) fn user_and_password(text: &str) -> Result<UserAndPassword, String> {
    match text.split_once(':') {
        Some((user, password)) if !user.is_empty() => Ok(UserAndPassword(user.to_owned(), password.to_owned())),
        _ => Err("it is written USER:PASSWORD".to_owned()),
    }
}
