//! Prints every message that a queue pushes. Usage: consumer [PORT]

use std::io::Write;

use hqueue_rust_client::hqueue::{HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor, TMessage};
use thrift::protocol::{TBinaryInputProtocolFactory, TBinaryOutputProtocolFactory};
use thrift::server::TServer;
use thrift::transport::{TBufferedReadTransportFactory, TBufferedWriteTransportFactory};

/// Connections that are served at a time.
const CONNECTIONS: usize = 8;

struct Printer;

impl HQueueSubscriberServiceSyncHandler for Printer {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        let mut out = std::io::stdout().lock();
        for m in messages {
            let id = m.id.unwrap_or_default();
            let (time, sequence) = (id.timestamp.unwrap_or_default(), id.sequence_i_d.unwrap_or_default());
            write!(out, "{}\t{time}:{sequence}\t", m.partition_i_d.unwrap_or_default())?;
            // Topic and value are Vec<u8>.
            out.write_all(&[m.topic.unwrap_or_default(), m.value.unwrap_or_default()].join(&b'\t'))?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        Ok(0) // all consumed; k: the first k; -1 or an error: failed, try again
    }
}

fn main() -> thrift::Result<()> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "9500".to_owned());
    let mut server = TServer::new(
        TBufferedReadTransportFactory::new(),
        TBinaryInputProtocolFactory::new(),
        TBufferedWriteTransportFactory::new(),
        TBinaryOutputProtocolFactory::new(),
        HQueueSubscriberServiceSyncProcessor::new(Printer),
        CONNECTIONS,
    );
    server.listen(format!("127.0.0.1:{port}"))
}
