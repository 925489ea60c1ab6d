//! Puts messages and prints where they went. Usage: producer HOST:PORT QUEUE TOPIC VALUE...

use std::process::ExitCode;

use hqueue_rust_client::hqueue::{HQueueError, HQueueServiceSyncClient, THQueueServiceSyncClient, TMessage};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport, TIoChannel, TTcpChannel};

fn put(address: &str, queue: &str, topic: &str, values: &[String]) -> thrift::Result<()> {
    let mut channel = TTcpChannel::new();
    channel.open(address)?;
    let (read, write) = channel.split()?;
    let mut client = HQueueServiceSyncClient::new(
        TBinaryInputProtocol::new(TBufferedReadTransport::new(read), true),
        TBinaryOutputProtocol::new(TBufferedWriteTransport::new(write), true),
    );
    let message = |value: &String| TMessage::new(None, None, topic.as_bytes().to_vec(), value.as_bytes().to_vec(), None);
    // -1: a random partition
    let put = client.put_messages_for_ids(queue.into(), -1, values.iter().map(message).collect())?;
    for id in put.ids.unwrap_or_default() {
        let (time, sequence) = (id.timestamp.unwrap_or_default(), id.sequence_i_d.unwrap_or_default());
        println!("{} {time}:{sequence}", put.partition_i_d.unwrap_or_default());
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, queue, topic, values @ ..] = &words[..] else {
        eprintln!("usage: producer HOST:PORT QUEUE TOPIC VALUE...");
        return ExitCode::from(2);
    };
    match put(address, queue, topic, values) {
        Ok(()) => ExitCode::SUCCESS,
        Err(thrift::Error::User(error)) if error.is::<HQueueError>() => {
            let refused = *error.downcast::<HQueueError>().unwrap_or_default();
            eprintln!("refused ({}): {}", refused.code.unwrap_or_default(), refused.message.unwrap_or_default());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
