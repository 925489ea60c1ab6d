//! Where a client connects to: `hqueue://host:port[,host:port]`.

use crate::error::Error;

const SCHEME: &str = "hqueue";

/// The addresses of a URL, each `host:port`.
pub(crate) fn addresses(url: &str) -> Result<Vec<String>, Error> {
    let wrong = |why: &str| Error::Invalid(format!("{url:?} is no address of a broker: {why}"));
    let (scheme, hosts) = url.split_once("://").ok_or_else(|| wrong("it is written hqueue://host:port[,host:port]"))?;
    if scheme != SCHEME {
        return Err(wrong(&format!("the scheme {scheme:?} is not known, only hqueue is")));
    }
    hosts
        .split(',')
        .map(
            |address| {
                if is_address(address) { Ok(address.to_owned()) } else { Err(wrong(&format!("{address:?} is no host:port"))) }
            },
        )
        .collect()
}

/// `host:port` with a port of 1 to 65535; an IPv6 address stands in brackets.
pub(crate) fn is_address(text: &str) -> bool {
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
        assert_eq!(addresses("hqueue://127.0.0.1:9190"), Ok(vec!["127.0.0.1:9190".to_owned()]));
        let two = addresses("hqueue://broker-1.example:1,[::1]:65535");
        assert_eq!(two, Ok(vec!["broker-1.example:1".to_owned(), "[::1]:65535".to_owned()]));
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        for (url, says) in [
            ("127.0.0.1:9190", "hqueue://host:port"),
            ("zk://127.0.0.1:2181/hqueue", "\"zk\""),
            ("http://x:1", "\"http\""),
            ("hqueue://", "\"\""),
            ("hqueue://a", "\"a\""),
            ("hqueue://a:0", "a:0"),
            ("hqueue://a:1,", "\"\""),
            ("hqueue://a:65536", "a:65536"),
            ("hqueue://a:+1", "a:+1"),
            ("hqueue://::1:80", "::1:80"),
            ("hqueue://a b:80", "a b:80"),
        ] {
            let error = addresses(url).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(url), "{url}: {error}");
        }
    }
}
