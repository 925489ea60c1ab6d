//! Clients of a broker on the stock library.

use std::fmt;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use hqueue_protocol::generated::{
    HQueueAdminServiceSyncClient, HQueueError, HQueueServiceSyncClient, TErrorCode, THQueueServiceSyncClient, TMessage,
    TMessageScan, TRegistration,
};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TInputProtocol, TOutputProtocol,
};
use thrift::transport::{
    TBufferedReadTransport, TBufferedWriteTransport, TFramedReadTransport, TFramedWriteTransport, TIoChannel, TReadTransport,
    TTcpChannel, TWriteTransport,
};

use crate::message::{Id, Message};

/// How a connection speaks: its transport and its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub framed: bool,
    pub compact: bool,
}

impl Dialect {
    /// What most people start: buffered binary.
    pub const USUAL: Self = Self { framed: false, compact: false };
    /// All that there are.
    pub const ALL: [Self; 4] = [
        Self::USUAL,
        Self { framed: true, compact: false },
        Self { framed: false, compact: true },
        Self { framed: true, compact: true },
    ];
}

pub(crate) type Input = Box<dyn TInputProtocol + Send>;
pub(crate) type Output = Box<dyn TOutputProtocol + Send>;

/// The stock library's transports and protocols over a socket.
pub(crate) fn speak(stream: TcpStream, dialect: Dialect) -> thrift::Result<(Input, Output)> {
    let (read, write) = TTcpChannel::with_stream(stream).split()?;
    Ok(if dialect.framed {
        with_protocol(TFramedReadTransport::new(read), TFramedWriteTransport::new(write), dialect)
    } else {
        with_protocol(TBufferedReadTransport::new(read), TBufferedWriteTransport::new(write), dialect)
    })
}

fn with_protocol<R, W>(read: R, write: W, dialect: Dialect) -> (Input, Output)
where
    R: TReadTransport + Send + 'static,
    W: TWriteTransport + Send + 'static,
{
    if dialect.compact {
        (Box::new(TCompactInputProtocol::new(read)), Box::new(TCompactOutputProtocol::new(write)))
    } else {
        (Box::new(TBinaryInputProtocol::new(read, true)), Box::new(TBinaryOutputProtocol::new(write, true)))
    }
}

/// A connection to the gateway.
pub type Gateway = HQueueServiceSyncClient<Input, Output>;

/// A connection to the administration.
pub type Admin = HQueueAdminServiceSyncClient<Input, Output>;

/// Longer than any call of a test takes.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// Connects to a broker's gateway.
pub fn gateway(port: u16, dialect: Dialect) -> thrift::Result<Gateway> {
    let (input, output) = connect(port, dialect)?;
    Ok(Gateway::new(input, output))
}

/// Connects to a broker's administration.
pub fn admin(port: u16) -> thrift::Result<Admin> {
    let (input, output) = connect(port, Dialect::USUAL)?;
    Ok(Admin::new(input, output))
}

fn connect(port: u16, dialect: Dialect) -> thrift::Result<(Input, Output)> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CALL_LIMIT))?;
    stream.set_write_timeout(Some(CALL_LIMIT))?;
    speak(stream, dialect)
}

/// The refusal in the result of a call.
///
/// # Panics
/// If the call was not refused.
#[track_caller]
pub fn refusal<T: fmt::Debug>(result: thrift::Result<T>) -> Refused {
    match result {
        Err(thrift::Error::User(error)) => match error.downcast::<HQueueError>() {
            Ok(error) => Refused { code: TErrorCode(error.code.unwrap_or_default()), message: error.message.unwrap_or_default() },
            Err(error) => panic!("an error, but no HQueueError: {error}"),
        },
        other => panic!("not refused: {other:?}"),
    }
}

/// What a broker answers when it does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: TErrorCode,
    pub message: String,
}

/// Puts and returns where each message went.
pub fn put_for_ids(
    gateway: &mut Gateway,
    queue: &str,
    partition: i16,
    messages: Vec<TMessage>,
) -> thrift::Result<(i16, Vec<Id>)> {
    let result = gateway.put_messages_for_ids(queue.into(), partition, messages)?;
    let ids = result.ids.expect("a put has ids").iter().map(Id::from).collect();
    Ok((result.partition_i_d.expect("a put has a partition"), ids))
}

/// Everything that a scan of one partition gives.
pub fn scan(gateway: &mut Gateway, queue: &str, partition: i16, scan: TMessageScan) -> thrift::Result<Vec<Message>> {
    let scanner = gateway.message_scanner_open(queue.into(), partition, scan)?;
    let mut messages = Vec::new();
    loop {
        let some = gateway.message_scanner_get_list(scanner, 1000)?;
        if some.is_empty() {
            break;
        }
        messages.extend(some.into_iter().map(Message::from));
    }
    gateway.message_scanner_close(scanner)?;
    Ok(messages)
}

/// All messages: from the oldest to the newest, of every topic.
#[must_use]
pub fn everything() -> TMessageScan {
    TMessageScan::new(None, None, None)
}

/// What a subscriber says of itself that wants everything from the oldest message on.
#[must_use]
pub fn registration(name: &str, address: &str) -> TRegistration {
    TRegistration {
        subscriber: Some(name.into()),
        address: Some(address.to_owned()),
        topics: None,
        partitions: None,
        start_position: Some("earliest".to_owned()),
        partition_start_positions: None,
        transport: None,
        protocol: None,
    }
}

/// A queue that is asked for, without anything that need not be said.
#[must_use]
pub fn queue_spec(name: impl AsRef<[u8]>, partitions: i32, ttl_seconds: i64) -> hqueue_protocol::generated::TQueueSpec {
    hqueue_protocol::generated::TQueueSpec {
        name: Some(name.as_ref().to_vec()),
        partitions: Some(partitions),
        ttl_seconds: Some(ttl_seconds),
        configuration: Some(std::collections::BTreeMap::new()),
        ..Default::default()
    }
}
