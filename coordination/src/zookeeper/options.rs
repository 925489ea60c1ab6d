//! Which ZooKeeper, and how.

use std::fmt;
use std::time::Duration;

use crate::check_path;

/// Where HQueue's tree is unless a connect string says something else.
pub const DEFAULT_ROOT: &str = "/hqueue";

/// ZooKeeper's usual port.
pub const DEFAULT_PORT: u16 = 2181;

/// How long a session lives without a sign of life, unless set.
pub const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest session timeout, asked for or granted. Below it the client crate takes its own timers for a dead server.
pub const MIN_SESSION_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest session timeout that can be asked for.
pub const MAX_SESSION_TIMEOUT: Duration = Duration::from_secs(3600);

/// What a [`ZooKeeperCoordinator`](super::ZooKeeperCoordinator) needs to know. Its `Debug` form hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ZooKeeperOptions {
    /// `host:port` of each server of the ensemble; an IPv6 address in brackets. At least one.
    pub hosts: Vec<String>,
    /// The node that is `/` to HQueue. Made if it is missing, with its parents. `/` is ZooKeeper's own root.
    pub root: String,
    /// How long the session lives without a sign of life: the time after which others may take over. 3 s to 1 h; the server may
    /// grant less (20 of its ticks, mostly 40 s).
    pub session_timeout: Duration,
    /// User and password of ZooKeeper's `digest` scheme. With it, what is made belongs to this user and nobody else can read it.
    pub auth: Option<(String, String)>,
}

/// Why options are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZooKeeperOptionsError {
    #[error("no ZooKeeper host is given: say host:port[,host:port]…[/root]")]
    NoHost,
    #[error("{host:?} is no ZooKeeper host: {why}")]
    Host { host: String, why: &'static str },
    #[error("{root:?} cannot be the root in ZooKeeper: {why}")]
    Root { root: String, why: &'static str },
    #[error("a session timeout of {asked:?}: the least is {MIN_SESSION_TIMEOUT:?}, the most {MAX_SESSION_TIMEOUT:?}")]
    SessionTimeout { asked: Duration },
    #[error("{user:?} is no user for ZooKeeper's digest scheme: it must not be empty or contain a colon")]
    User { user: String },
}

impl ZooKeeperOptions {
    /// Takes `host[:port][,host[:port]]…[/root]`; other options have their defaults.
    ///
    /// # Errors
    /// What is wrong with which word.
    pub fn parse(connect: &str) -> Result<Self, ZooKeeperOptionsError> {
        if let Some((scheme, _)) = connect.split_once("://") {
            return Err(host_error(scheme, "it is a scheme; give the hosts only"));
        }
        let (hosts, root) = match connect.find('/') {
            Some(slash) => connect.split_at(slash),
            None => (connect, DEFAULT_ROOT),
        };
        if hosts.trim().is_empty() {
            return Err(ZooKeeperOptionsError::NoHost);
        }
        let hosts = hosts.split(',').map(|host| with_port(host.trim())).collect::<Result<_, _>>()?;
        let options = Self { hosts, root: root.to_owned(), session_timeout: DEFAULT_SESSION_TIMEOUT, auth: None };
        options.check()?;
        Ok(options)
    }

    /// Checks all fields. [`start`](super::ZooKeeperCoordinator::start) does it too.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ZooKeeperOptionsError> {
        if self.hosts.is_empty() {
            return Err(ZooKeeperOptionsError::NoHost);
        }
        for host in &self.hosts {
            if with_port(host)? != *host {
                return Err(host_error(host, "the port is missing"));
            }
        }
        if let Err(crate::CoordinationError::BadPath { why, .. }) = check_path(&self.root) {
            return Err(ZooKeeperOptionsError::Root { root: self.root.clone(), why });
        }
        if !(MIN_SESSION_TIMEOUT..=MAX_SESSION_TIMEOUT).contains(&self.session_timeout) {
            return Err(ZooKeeperOptionsError::SessionTimeout { asked: self.session_timeout });
        }
        match &self.auth {
            Some((user, _)) if user.is_empty() || user.contains(':') => Err(ZooKeeperOptionsError::User { user: user.clone() }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for ZooKeeperOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeperOptions")
            .field("hosts", &self.hosts)
            .field("root", &self.root)
            .field("session_timeout", &self.session_timeout)
            .field("auth", &self.auth.as_ref().map(|(user, _)| user))
            .finish()
    }
}

fn host_error(host: &str, why: &'static str) -> ZooKeeperOptionsError {
    ZooKeeperOptionsError::Host { host: host.to_owned(), why }
}

/// Checks `host` or `host:port`, and adds the usual port if there is none.
fn with_port(host: &str) -> Result<String, ZooKeeperOptionsError> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(bracketed) => {
            let (address, rest) = bracketed.split_once(']').ok_or_else(|| host_error(host, "the bracket is not closed"))?;
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(host_error(host, "in brackets there must be an IPv6 address"));
            }
            (address, rest)
        }
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    if name.is_empty() {
        return Err(host_error(host, "the name is empty"));
    }
    if name.chars().any(|c| c.is_whitespace() || c.is_control() || c == '@') {
        return Err(host_error(host, "a name has no spaces, control characters or @"));
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok(format!("{host}:{DEFAULT_PORT}")),
        None => Err(host_error(host, "behind the bracket there may only be a colon and a port")),
        Some(port) if port.contains(':') => Err(host_error(host, "an IPv6 address stands in brackets: [::1]:2181")),
        Some(port) => match port.parse::<u16>() {
            Ok(1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(host.to_owned()),
            _ => Err(host_error(host, "the port is no number from 1 to 65535")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_root_are_taken_apart() {
        let options = ZooKeeperOptions::parse("h1:2181, h2,[::1]:2182,[fe80::1]/a/b").unwrap();
        assert_eq!(options.hosts, ["h1:2181", "h2:2181", "[::1]:2182", "[fe80::1]:2181"]);
        assert_eq!(options.root, "/a/b");
        assert_eq!(options.session_timeout, Duration::from_secs(10));
        assert_eq!(ZooKeeperOptions::parse("h1").unwrap().root, "/hqueue");
        assert_eq!(ZooKeeperOptions::parse("h1/").unwrap().root, "/");
    }

    #[test]
    fn a_refusal_names_the_word_and_the_reason() {
        let cases = [
            ("", "no ZooKeeper host is given"),
            ("/hqueue", "no ZooKeeper host is given"),
            ("h1,,h2", r#""" is no ZooKeeper host: the name is empty"#),
            ("h1:", r#""h1:" is no ZooKeeper host: the port"#),
            ("h1:0", "1 to 65535"),
            ("h1:65536", "1 to 65535"),
            ("h1:+80", "1 to 65535"),
            ("h1:x", "1 to 65535"),
            ("::1", "the name is empty"),
            ("fe80::1", "stands in brackets"),
            ("[::1", "the bracket is not closed"),
            ("[h1]:2181", "IPv6 address"),
            ("[::1]2181", "behind the bracket"),
            ("h 1", "no spaces"),
            ("zk://h1:2181/hqueue", r#""zk" is no ZooKeeper host: it is a scheme"#),
            ("h1/a/", r#""/a/" cannot be the root in ZooKeeper: it ends with a slash"#),
            ("h1/a//b", "empty name"),
            ("h1/é", "printable ASCII"),
            ("h1/zookeeper", "belongs to ZooKeeper"),
        ];
        for (connect, words) in cases {
            let error = ZooKeeperOptions::parse(connect).unwrap_err().to_string();
            assert!(error.contains(words), "{connect:?}: {error}");
        }
    }

    #[test]
    fn limits_are_checked_and_named() {
        let good = ZooKeeperOptions::parse("h1").unwrap();
        let with = |seconds| ZooKeeperOptions { session_timeout: Duration::from_secs(seconds), ..good.clone() };
        assert_eq!(with(3).check(), Ok(()));
        let error = with(2).check().unwrap_err().to_string();
        assert_eq!(error, "a session timeout of 2s: the least is 3s, the most 3600s");
        assert!(with(3601).check().is_err());
        for user in ["", "a:b"] {
            let options = ZooKeeperOptions { auth: Some((user.to_owned(), "secret".to_owned())), ..good.clone() };
            assert!(matches!(options.check(), Err(ZooKeeperOptionsError::User { .. })));
        }
    }

    #[test]
    fn the_password_is_not_shown() {
        let mut options = ZooKeeperOptions::parse("h1").unwrap();
        options.auth = Some(("user".to_owned(), "secret".to_owned()));
        let shown = format!("{options:?}");
        assert!(shown.contains("user") && !shown.contains("secret"), "{shown}");
    }
}
