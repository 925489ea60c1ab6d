//! Every call of the gateway: gateway PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs).

use hqueue_rust_client::hqueue::{HQueueError, HQueueServiceSyncClient, THQueueServiceSyncClient, TMessage, TMessageScan};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TInputProtocol, TOutputProtocol,
};
use thrift::transport::{
    TBufferedReadTransport, TBufferedWriteTransport, TFramedReadTransport, TFramedWriteTransport, TIoChannel, TReadTransport,
    TTcpChannel, TWriteTransport,
};

fn message(topic: &[u8], value: &[u8], partition: impl Into<Option<i16>>) -> TMessage {
    TMessage::new(None, partition, topic.to_vec(), value.to_vec(), None)
}

fn topics(names: &[&str]) -> TMessageScan {
    TMessageScan::new(None, None, names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>())
}

fn hex(bytes: Option<&Vec<u8>>) -> String {
    bytes.unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn show(scanner: &str, messages: &[TMessage]) {
    for m in messages {
        let id = m.id.as_ref().unwrap();
        let (time, sequence) = (id.timestamp.unwrap(), id.sequence_i_d.unwrap());
        println!("{scanner} {time}:{sequence} {} {}", hex(m.topic.as_ref()), hex(m.value.as_ref()));
    }
}

fn refused<T>(what: &str, result: thrift::Result<T>) {
    match result {
        Ok(_) => println!("accepted {what}"),
        Err(thrift::Error::User(error)) => {
            let error = error.downcast::<HQueueError>().unwrap();
            println!("refused {what} {} {}", error.code.unwrap(), error.message.unwrap());
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

fn main() -> thrift::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let mut channel = TTcpChannel::new();
    channel.open(format!("127.0.0.1:{}", words[1]))?;
    let (read, write) = channel.split()?;
    let (read, write): (Box<dyn TReadTransport>, Box<dyn TWriteTransport>) = if words[2] == "framed" {
        (Box::new(TFramedReadTransport::new(read)), Box::new(TFramedWriteTransport::new(write)))
    } else {
        (Box::new(TBufferedReadTransport::new(read)), Box::new(TBufferedWriteTransport::new(write)))
    };
    let (input, output): (Box<dyn TInputProtocol>, Box<dyn TOutputProtocol>) = if words[3] == "compact" {
        (Box::new(TCompactInputProtocol::new(read)), Box::new(TCompactOutputProtocol::new(write)))
    } else {
        (Box::new(TBinaryInputProtocol::new(read, true)), Box::new(TBinaryOutputProtocol::new(write, true)))
    };
    let mut client = HQueueServiceSyncClient::new(input, output);
    let queue = words[4].as_bytes().to_vec();

    client.put_message(queue.clone(), message(b"one", &(0..=255).collect::<Vec<u8>>(), None))?;
    client.put_message(queue.clone(), message(b"\xff\0", b"own", 2))?;
    let many = [&b""[..], b"x", b"\xc3\x28"].map(|value| message(b"many", value, None));
    client.put_messages(queue.clone(), many.to_vec())?;
    client.put_message_with_pid(queue.clone(), 1, message(b"with", "d\u{e9}j\u{e0} vu".as_bytes(), None))?;
    let number = |n: usize| message([&b"even"[..], b"odd"][n % 2], n.to_string().as_bytes(), None);
    client.put_messages_with_pid(queue.clone(), 0, (0..250).map(number).collect())?;

    let single = client.message_scanner_open(queue.clone(), 0, topics(&["odd", "even"]))?;
    let mut all = Vec::new();
    loop {
        let m = client.message_scanner_get(single)?;
        if m.id.is_none() {
            break;
        }
        all.push(m);
    }
    let lists = client.message_scanner_open(queue.clone(), 0, topics(&["even", "odd"]))?;
    let some = TMessageScan::new(all[100].id.clone(), all[200].id.clone(), vec![b"odd".to_vec()]);
    let part = client.message_scanner_open(queue.clone(), 0, some)?;
    show("single", &all);
    loop {
        let got = client.message_scanner_get_list(lists, 100)?;
        if got.is_empty() {
            break;
        }
        show("lists", &got);
    }
    show("part", &client.message_scanner_get_list(part, 1000)?);
    for scanner in [single, lists, part] {
        client.message_scanner_close(scanner)?;
    }
    for location in client.get_queue_locations(queue.clone())? {
        println!("location {}", String::from_utf8(location).unwrap());
    }

    let m = message(b"t", b"v", None);
    refused("no-queue", client.put_message(b"no-such-queue".to_vec(), m.clone()));
    refused("slash", client.put_messages(b"a/b".to_vec(), vec![m.clone()]));
    refused("empty-name", client.get_queue_locations(Vec::new()));
    refused("bytes-name", client.message_scanner_open(b"\xff\0".to_vec(), 0, topics(&[])));
    refused("partition", client.put_message_with_pid(queue.clone(), 99, m));
    refused("long-topic", client.put_message(queue.clone(), message(&[b't'; 256], b"v", None)));
    refused("empty-topic", client.put_messages_with_pid(queue.clone(), 0, vec![message(b"", b"v", None)]));
    refused("large", client.put_message(queue.clone(), message(b"t", &vec![0; 4_194_305], None)));
    refused("closed", client.message_scanner_get(single));
    let open = client.message_scanner_open(queue, 0, topics(&[]))?;
    refused("count", client.message_scanner_get_list(open, 0));
    Ok(())
}
