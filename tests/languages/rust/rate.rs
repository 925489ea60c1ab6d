//! How many messages a second go through: rate serve PORT, rate call PORT (see speed/counting.rs).

use std::sync::Mutex;
use std::time::Instant;

use hqueue_rust_client::hqueue::{
    HQueueSubscriberServiceSyncClient, HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor,
    THQueueSubscriberServiceSyncClient, TMessage, TMessageID,
};
use thrift::protocol::{TBinaryInputProtocol, TBinaryInputProtocolFactory, TBinaryOutputProtocol, TBinaryOutputProtocolFactory};
use thrift::server::TServer;
use thrift::transport::{
    TBufferedReadTransport, TBufferedReadTransportFactory, TBufferedWriteTransport, TBufferedWriteTransportFactory, TIoChannel,
    TTcpChannel,
};

const DIGITS: usize = 10;

struct Counter {
    began: Instant,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    next: u64,
    calls: u64,
    printed: u128,
}

impl HQueueSubscriberServiceSyncHandler for Counter {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        let mut counts = self.counts.lock().unwrap();
        for m in &messages {
            let value = m.value.as_ref().unwrap();
            let number = value[..DIGITS].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
            if number == 0 {
                println!("run");
                (counts.next, counts.calls) = (0, 0);
            }
            if number != counts.next || value.len() != 1024 {
                println!("fault message {number} of {} bytes came where {} was due", value.len(), counts.next);
            }
            counts.next = number + 1;
        }
        if messages.is_empty() {
            return Ok(0);
        }
        counts.calls += 1;
        let now = self.began.elapsed().as_micros();
        if now - counts.printed >= 100_000 {
            counts.printed = now;
            println!("at {now} {} {}", counts.next, counts.calls);
        }
        Ok(0)
    }
}

fn serve(address: &str) -> thrift::Result<()> {
    TServer::new(
        TBufferedReadTransportFactory::new(),
        TBinaryInputProtocolFactory::new(),
        TBufferedWriteTransportFactory::new(),
        TBinaryOutputProtocolFactory::new(),
        HQueueSubscriberServiceSyncProcessor::new(Counter { began: Instant::now(), counts: Mutex::default() }),
        8,
    )
    .listen(address)
}

fn call(address: &str) -> thrift::Result<()> {
    let mut channel = TTcpChannel::new();
    channel.open(address)?;
    let (read, write) = channel.split()?;
    let mut client = HQueueSubscriberServiceSyncClient::new(
        TBinaryInputProtocol::new(TBufferedReadTransport::new(read), true),
        TBinaryOutputProtocol::new(TBufferedWriteTransport::new(write), true),
    );
    let mut number = 0;
    // The client takes the list away.
    let message = |n, value| TMessage::new(TMessageID::new(1, n), 0, b"t".to_vec(), value, None);
    let mut value = vec![b'x'; 1024];
    loop {
        let messages = (0..100).map(|n| {
            let mut rest: u64 = number;
            for digit in value[..DIGITS].iter_mut().rev() {
                *digit = b'0' + u8::try_from(rest % 10).unwrap();
                rest /= 10;
            }
            number += 1;
            message(n, value.clone())
        });
        client.consume_messages(messages.collect())?;
    }
}

fn main() -> thrift::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let address = format!("127.0.0.1:{}", words[2]);
    if words[1] == "serve" { serve(&address) } else { call(&address) }
}
