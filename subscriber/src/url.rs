//! Where a client connects to: `hqueue://host:port[,host:port]` or `zk://host:port[,host:port][/root]`.

use hqueue_coordination::zookeeper::ZooKeeperOptions;

use crate::error::Error;

const FORMS: &str = "it is written hqueue://host:port[,host:port] or zk://host:port[,host:port][/root]";

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// These brokers, each `host:port`.
    Brokers(Vec<String>),
    /// The brokers that meet there.
    ZooKeeper(ZooKeeperOptions),
}

/// Takes a URL apart.
pub(crate) fn parse(url: &str) -> Result<Way, Error> {
    let wrong = |why: &str| Error::Invalid(format!("{url:?} is no way to a broker: {why}"));
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong(FORMS))?;
    match scheme {
        "hqueue" => addresses(rest).map(Way::Brokers).map_err(|why| wrong(&why)),
        "zk" => ZooKeeperOptions::parse(rest).map(Way::ZooKeeper).map_err(|error| wrong(&error.to_string())),
        _ => Err(wrong(&format!("the scheme {scheme:?} is not known, only hqueue and zk are"))),
    }
}

fn addresses(hosts: &str) -> Result<Vec<String>, String> {
    hosts
        .split(',')
        .map(|address| {
            if is_address(address) {
                Ok(address.to_owned())
            } else {
                Err(format!("{address:?} is no host:port, with a port from 1 to 65535"))
            }
        })
        .collect()
}

/// `host:port` with a port of 1 to 65535; an IPv6 address stands in brackets.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let host_fits = match bare {
            Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
        };
        host_fits && port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_more_addresses() {
        assert_eq!(parse("hqueue://127.0.0.1:9190"), Ok(Way::Brokers(vec!["127.0.0.1:9190".to_owned()])));
        let two = vec!["broker-1.example:1".to_owned(), "[::1]:65535".to_owned()];
        assert_eq!(parse("hqueue://broker-1.example:1,[::1]:65535"), Ok(Way::Brokers(two)));
    }

    #[test]
    fn hosts_and_root_of_zookeeper() {
        for (url, hosts, root) in [
            ("zk://a:2181", &["a:2181"][..], "/hqueue"),
            ("zk://a:2181,[::1]:2182/x/y", &["a:2181", "[::1]:2182"], "/x/y"),
            ("zk://a", &["a:2181"], "/hqueue"),
            ("zk://a/", &["a:2181"], "/"),
        ] {
            let Ok(Way::ZooKeeper(options)) = parse(url) else { panic!("{url}") };
            assert_eq!((options.hosts, options.root.as_str()), (hosts.iter().map(|h| (*h).to_owned()).collect(), root), "{url}");
        }
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        for (url, says) in [
            ("127.0.0.1:9190", "hqueue://host:port"),
            ("http://x:1", "\"http\""),
            ("hqueue://", "\"\""),
            ("hqueue://a", "\"a\""),
            ("hqueue://a:0", "a:0"),
            ("hqueue://a:1,", "\"\""),
            ("hqueue://a:65536", "a:65536"),
            ("hqueue://a:+1", "a:+1"),
            ("hqueue://::1:80", "::1:80"),
            ("hqueue://a b:80", "a b:80"),
            ("zk://", "no ZooKeeper host"),
            ("zk://a:0/x", "\"a:0\""),
            ("zk://a:1/x/", "\"/x/\""),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(url), "{url}: {error}");
        }
    }
}
