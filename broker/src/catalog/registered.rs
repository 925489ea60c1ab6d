//! What a registration is in coordination: the payloads of `address` and `topics` nodes, and how they are called.
//!
//! `address` is the first process of a subscriber, `address-<x>` a further one; `topics` and `topics-<x>` belong to them.

use hqueue_protocol::names::SubscriberName;
use serde::{Deserialize, Serialize};

use super::subscribers::{check_address, check_topics};
use crate::subscription::{EndpointSpec, SubscriptionOptions};

/// Connections to an endpoint at most.
const MAX_CONNECTIONS: u16 = 16;

/// The payload of an `address` node, when it is JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRecord {
    /// `host:port`.
    pub address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u16>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// Of a subscriber that registered with a broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<i64>,
}

impl AddressRecord {
    /// Plain `host:port` where that says it all.
    #[must_use]
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Reads an `address` node that `session` holds. The error says what is wrong with it.
pub fn read_address(payload: &[u8], session: Option<i64>) -> Result<EndpointSpec, String> {
    let text = std::str::from_utf8(payload).map_err(|_| "the address is not UTF-8".to_owned())?.trim();
    let record = if text.starts_with('{') {
        serde_json::from_str(text).map_err(|error| format!("the address cannot be read: {error}"))?
    } else {
        AddressRecord {
            address: text.to_owned(),
            transport: None,
            protocol: None,
            connections: None,
            tls: false,
            registration: None,
        }
    };
    check_address(&record.address).map_err(|refusal| refusal.message)?;
    if record.tls {
        return Err("the address asks for TLS, which this broker does not speak to endpoints".to_owned());
    }
    let mut options = SubscriptionOptions::default();
    for (name, value) in [("transport", &record.transport), ("protocol", &record.protocol)] {
        if let Some(value) = value {
            options.set(name, value).map_err(|error| error.to_string())?;
        }
    }
    let mut spec = EndpointSpec::fixed(record.address);
    spec.registration = record.registration.or(session).unwrap_or_default();
    (spec.transport, spec.protocol) = (options.transport, options.protocol);
    if let Some(connections) = record.connections {
        if !(1..=MAX_CONNECTIONS).contains(&connections) {
            return Err(format!("{connections} connections: 1 to {MAX_CONNECTIONS} are possible"));
        }
        spec.connections = connections;
    }
    Ok(spec)
}

/// Reads a `topics` node: a JSON list of texts, or of lists of numbers where a topic is not UTF-8. Empty: all.
pub fn read_topics(payload: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    if payload.is_empty() {
        return Ok(Vec::new());
    }
    let topics = crate::subscription::topics_from_json(payload).map_err(|error| format!("the topics cannot be read: {error}"))?;
    check_topics(topics).map_err(|refusal| refusal.message)
}

/// What stands behind `address` or `topics` in the name of a node: empty for the first process. `None`: it is no such node.
#[must_use]
pub fn suffix<'a>(name: &'a str, kind: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(kind)?;
    (rest.is_empty() || rest.starts_with('-')).then_some(rest)
}

/// A child of a partition's node is a subscriber's, going by its name.
#[must_use]
pub fn is_subscriber(name: &str) -> bool {
    // The owner's node is none: no subscriber may be called so.
    SubscriberName::from_bytes(name.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_or_json() {
        let plain = read_address(b"10.0.0.9:7000", Some(5)).unwrap();
        assert_eq!((plain.address.as_str(), plain.registration, plain.connections), ("10.0.0.9:7000", 5, 1));
        let json = read_address(br#"{"address":"h:1","transport":"framed","connections":4,"registration":7}"#, Some(5)).unwrap();
        assert_eq!((json.address.as_str(), json.registration, json.connections), ("h:1", 7, 4));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (payload, why) in [
            (&b"not an address"[..], "not an address"),
            (b"127.0.0.1:99999", "99999"),
            (b"", "no address"),
            (b"\xff", "UTF-8"),
            (b"{broken", "cannot be read"),
            (br#"{"address":"h:1","transport":"x"}"#, "transport"),
            (br#"{"address":"h:1","connections":0}"#, "0 connections"),
            (br#"{"address":"h:1","tls":true}"#, "TLS"),
        ] {
            let error = read_address(payload, None).unwrap_err();
            assert!(error.contains(why), "{payload:?}: {error}");
        }
    }

    #[test]
    fn topics_are_a_list() {
        assert_eq!(read_topics(b""), Ok(Vec::new()));
        assert_eq!(read_topics(br#"["a",[255]]"#), Ok(vec![b"a".to_vec(), vec![255]]));
        assert!(read_topics(b"a,b").is_err());
        assert!(read_topics(br#"[""]"#).is_err());
    }

    #[test]
    fn names_of_nodes() {
        assert_eq!(suffix("address", "address"), Some(""));
        assert_eq!(suffix("address-0x1", "address"), Some("-0x1"));
        assert_eq!(suffix("addresses", "address"), None);
        assert_eq!(suffix("topics", "address"), None);
    }
}
