//! What is it that listens at a gateway's address? Asked at the start, so that nobody has to guess from errors later.

use std::fmt;
use std::time::Duration;

use hqueue_protocol::wire::{MessageHeader, MessageType, Protocol, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::GatewayOptions;
use super::connection::{CallError, Connection};
use super::reply::optional;

/// Each way of asking may take so long.
const PATIENCE: Duration = Duration::from_secs(2);
const METHOD: &str = "getThriftServerType";

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Thrift2,
    Thrift1,
    Framed,
    Compact,
    FramedCompact,
    Http,
    /// Nobody listens, or the machine is not reached.
    Nobody(String),
    /// It takes connections and says nothing.
    Silent,
    Other(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thrift2 => f.write_str("a Thrift2 gateway"),
            Self::Thrift1 => f.write_str("a Thrift1 gateway: start `hbase thrift2`, not `hbase thrift`"),
            Self::Framed => {
                f.write_str("a gateway with the framed transport: start it without -f (and not with a non-blocking server)")
            }
            Self::Compact => f.write_str("a gateway with the compact protocol: start it without -c"),
            Self::FramedCompact => {
                f.write_str("a gateway with the framed transport and the compact protocol: start it without -f and -c")
            }
            Self::Http => f.write_str("a gateway in HTTP mode: set hbase.regionserver.thrift.http to false"),
            Self::Nobody(reason) => write!(f, "nobody: {reason}"),
            Self::Silent => write!(f, "somebody who does not answer within {PATIENCE:?}"),
            Self::Other(reason) => write!(f, "no Thrift2 gateway of HBase: {reason}"),
        }
    }
}

/// Finds out what listens at an address.
pub async fn probe(address: &str, options: &GatewayOptions) -> Found {
    let first = match Connection::open(address, options.connect_timeout, 1 << 16).await {
        Err(error) => return Found::Nobody(error.to_string()),
        Ok(mut connection) => match timeout(PATIENCE, connection.call(METHOD, &[0])).await {
            Ok(Ok(body)) => return by_type(optional(&body).ok().flatten()),
            // Gateways before 2.2 do not know the method; the first call will tell.
            Ok(Err(CallError::Exception(_))) => return Found::Thrift2,
            Ok(Err(CallError::Broken(reason))) => Some(reason),
            Err(_) => None,
        },
    };
    if answers(address, b"OPTIONS / HTTP/1.0\r\n\r\n", b"HTTP/").await {
        return Found::Http;
    }
    for (protocol, is_framed, found) in [
        (Protocol::Binary, true, Found::Framed),
        (Protocol::Compact, false, Found::Compact),
        (Protocol::Compact, true, Found::FramedCompact),
    ] {
        let begin = if protocol == Protocol::Binary { 0x80 } else { 0x82 };
        if answers_thrift(address, protocol, is_framed, begin).await {
            return found;
        }
    }
    first.map_or(Found::Silent, Found::Other)
}

fn by_type(number: Option<i64>) -> Found {
    match number {
        Some(1) => Found::Thrift1,
        _ => Found::Thrift2,
    }
}

async fn answers_thrift(address: &str, protocol: Protocol, is_framed: bool, begin: u8) -> bool {
    let mut call = Vec::new();
    header::write(
        &mut call,
        protocol,
        &MessageHeader { method: METHOD.as_bytes(), message_type: MessageType::Call, sequence: 1 },
    );
    call.push(0);
    if !is_framed {
        return answers(address, &call, &[begin]).await;
    }
    let length = hqueue_protocol::wire::frame::length_of(call.len());
    // An answer is shorter than 64 KiB: its length begins with two zeros, and the message follows.
    let Some(reply) = ask(address, &[&length[..], &call].concat()).await else { return false };
    matches!(reply.get(..5), Some([0, 0, _, _, first]) if *first == begin)
}

async fn answers(address: &str, question: &[u8], begins: &[u8]) -> bool {
    ask(address, question).await.is_some_and(|reply| reply.starts_with(begins))
}

/// The first bytes of what comes back.
async fn ask(address: &str, question: &[u8]) -> Option<Vec<u8>> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(question).await.ok()?;
        let mut reply = Vec::new();
        while reply.len() < 5 {
            let read = stream.read_buf(&mut reply).await.ok()?;
            if read == 0 {
                return None;
            }
        }
        Some(reply)
    };
    timeout(PATIENCE, asked).await.ok().flatten()
}
