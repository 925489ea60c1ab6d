//! Hostile names are refused everywhere and leave no trace; any bytes are values, up to the limit.

use std::collections::BTreeSet;

use hqueue_protocol::generated::{
    TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessage, TSubscriberSpec,
};
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::{Admin, Broker, Consumer, Dialect, PATIENCE, refusal, wait};

/// What cannot be the name of anything.
fn bad_names() -> Vec<Vec<u8>> {
    let text = [
        "", "a/b", "..", ".", "...", "a//b", "/x", "x/", "/", "a b", " a", "a ", "a\nb", "a\0b", "\0", "%2f", "a%2fb", "\u{7f}",
        "队列", "é", "e\u{301}", "🚀", "-a", "--help", ".hidden", "a\\b", "a:b", "a*", "$a", "~", "a\tb", "'a'", "\"a\"",
    ];
    let mut names: Vec<Vec<u8>> = text.iter().map(|n| n.as_bytes().to_vec()).collect();
    names.extend([vec![b'n'; 129], vec![b'n'; 256], vec![b'n'; 5000], vec![0xff, 0xfe], b"a\xc3".to_vec()]);
    names
}

/// What looks odd and is a name.
const GOOD_NAMES: [&str; 14] =
    ["a", "0", "_", "__", "a..b", "a.", "a-", "A", "zookeeper", "address", "topics", "assignment", "subscribers", "con.txt"];

fn create(admin: &mut Admin, name: &[u8]) -> thrift::Result<Vec<String>> {
    admin.create_queue(hqueue_tests::queue_spec(name, 1, 60))
}

fn subscriber(name: &[u8]) -> TSubscriberSpec {
    TSubscriberSpec { name: Some(name.to_vec()), start_position: None, ..TSubscriberSpec::default() }
}

fn listed(admin: &mut Admin) -> BTreeSet<Vec<u8>> {
    admin.list_queues().unwrap().into_iter().map(|q| q.name.unwrap()).collect()
}

#[test]
fn bad_queue_names_are_refused_by_every_call() {
    let broker = Broker::start();
    broker.create("good", 1);
    let (mut admin, mut gateway) = (broker.admin(), broker.gateway());
    let before = broker.files().len();
    let mut names = bad_names();
    names.extend([vec![b'n'; 125], b"q.dlq".to_vec(), b".dlq".to_vec()]);
    for name in names {
        let shown = String::from_utf8_lossy(&name).into_owned();
        let refused = refusal(create(&mut admin, &name));
        assert_eq!(refused.code, TErrorCode::INVALID, "{shown:?}: {}", refused.message);
        assert!(refused.message.contains("name"), "{shown:?}: {}", refused.message);
        assert!(refused.message.len() < 1000, "{shown:?}");
        for refused in [
            refusal(gateway.put_message(name.clone(), to_put("t", "v"))),
            refusal(gateway.put_messages_with_pid(name.clone(), 0, vec![to_put("t", "v")])),
            refusal(gateway.message_scanner_open(name.clone(), 0, hqueue_tests::gateway::everything())),
            refusal(gateway.get_queue_locations(name.clone())),
            refusal(admin.describe_queue(name.clone())),
            refusal(admin.disable_queue(name.clone())),
            refusal(admin.drop_queue(name.clone())),
            refusal(admin.add_subscriber(name.clone(), subscriber(b"s"))),
        ] {
            assert!([TErrorCode::INVALID, TErrorCode::NOT_FOUND].contains(&refused.code), "{shown:?}: {}", refused.message);
        }
    }
    assert_eq!(listed(&mut admin), BTreeSet::from([b"good".to_vec()]), "the others can still be listed");
    assert_eq!(broker.files().len(), before, "nothing was written");
    broker.put("good", 0, &["v"]);
}

#[test]
fn what_can_be_made_can_be_listed_used_and_deleted() {
    let mut broker = Broker::start();
    let longest = "n".repeat(124);
    let names: Vec<&str> = GOOD_NAMES.into_iter().chain([longest.as_str()]).collect();
    let consumer = Consumer::start();
    for name in &names {
        create(&mut broker.admin(), name.as_bytes()).unwrap();
        broker.put(name, 0, &[*name]);
        broker.subscribe(name, name, &consumer.address(), &[]);
    }
    wait("all are pushed", PATIENCE, || consumer.count() >= names.len());
    broker.kill();
    broker.restart();
    let mut admin = broker.admin();
    assert_eq!(listed(&mut admin), names.iter().map(|n| n.as_bytes().to_vec()).collect(), "unchanged by a restart");
    for name in &names {
        assert_eq!(broker.scan(name, 0)[0].text(), *name);
        admin.delete_subscriber((*name).into(), (*name).into()).unwrap();
        admin.disable_queue((*name).into()).unwrap();
        admin.drop_queue((*name).into()).unwrap();
    }
    assert!(listed(&mut admin).is_empty());
}

#[test]
fn bad_subscriber_names_are_refused() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut admin = broker.admin();
    let mut names = bad_names();
    names.push(b"owner".to_vec());
    for name in names {
        let refused = refusal(admin.add_subscriber("q".into(), subscriber(&name)));
        assert_eq!(refused.code, TErrorCode::INVALID, "{:?}: {}", String::from_utf8_lossy(&name), refused.message);
        assert!(refused.message.contains("name"), "{}", refused.message);
        assert_eq!(refusal(admin.delete_subscriber("q".into(), name)).code, TErrorCode::NOT_FOUND);
    }
    let longest = "n".repeat(128);
    for name in GOOD_NAMES.into_iter().chain([longest.as_str(), "q.dlq"]) {
        if let Err(error) = admin.add_subscriber("q".into(), subscriber(name.as_bytes())) {
            panic!("{name}: {:?}", refusal::<()>(Err(error)));
        }
        admin.delete_subscriber("q".into(), name.into()).unwrap();
    }
    assert!(broker.status("q").subscriptions.unwrap().is_empty());
}

/// Sizes around the buffers of transports, and odd bytes; to every dialect.
#[test]
fn any_bytes_of_any_size_arrive_as_they_were() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumers: Vec<Consumer> = Dialect::ALL.into_iter().map(Consumer::speaking).collect();
    for (n, consumer) in consumers.iter().enumerate() {
        broker.subscribe("q", &format!("s{n}"), &consumer.address(), &[]);
    }
    let sizes =
        [0, 1, 127, 128, 4095, 4096, 4097, 16_383, 16_384, 65_535, 65_536, 1_048_575, 1_048_576, 1_048_577, 4_194_303, 4_194_304];
    let mut values: Vec<Vec<u8>> = sizes.iter().map(|size| (0..*size).map(|n| (n * 7 % 251) as u8).collect()).collect();
    values.extend([(0..=255).collect(), b"\xc3\x28".to_vec(), b"POST / HTTP/1.1\r\n\r\n".to_vec(), vec![0x80, 1, 0, 1]]);
    let mut gateway = broker.gateway();
    for value in &values {
        gateway.put_message_with_pid("q".into(), 0, to_put("t", value.clone())).unwrap();
    }
    for messages in [vec![to_put("t", ""), to_put("t", "x"), to_put("t", "")], vec![to_put("t", "")]] {
        values.extend(messages.iter().map(|m| m.value.clone().unwrap()));
        gateway.put_messages_with_pid("q".into(), 0, messages).unwrap();
    }
    for (dialect, consumer) in Dialect::ALL.iter().zip(&consumers) {
        wait("all are pushed", PATIENCE, || consumer.count() >= values.len());
        for (n, (message, value)) in consumer.accepted().iter().zip(&values).enumerate() {
            assert!(message.value == *value, "{dialect:?}: value {n} of {} bytes", value.len());
        }
    }
    let stored: Vec<Vec<u8>> = broker.scan("q", 0).into_iter().map(|m| m.value).collect();
    assert!(stored == values);
}

#[test]
fn what_is_too_large_or_not_there_is_refused_and_stores_nothing() {
    let broker = Broker::start();
    broker.create("q", 2);
    let mut gateway = broker.gateway();
    let over = to_put("t", vec![b'x'; 4_194_305]);
    let refused = refusal(gateway.put_message("q".into(), over.clone()));
    assert_eq!(refused.code, TErrorCode::TOO_LARGE);
    assert!(refused.message.contains("4194304") && refused.message.contains("4194305"), "limit and size: {}", refused.message);
    let refused = refusal(gateway.put_messages_with_pid("q".into(), 0, vec![to_put("t", "good"), over]));
    assert!(refused.message.contains("4194304"), "{}", refused.message);

    let without = |topic: Option<&str>, value: Option<&str>| {
        TMessage::new(None, None, topic.map(|t| t.as_bytes().to_vec()), value.map(|v| v.as_bytes().to_vec()), None)
    };
    for (message, word) in [
        (without(Some("t"), None), "value"),
        (without(None, Some("v")), "topic"),
        (without(Some(""), Some("v")), "topic"),
        (without(Some(&"t".repeat(256)), Some("v")), "255"),
    ] {
        for refused in [
            refusal(gateway.put_message("q".into(), message.clone())),
            refusal(gateway.put_message_with_pid("q".into(), 0, message.clone())),
            refusal(gateway.put_messages("q".into(), vec![to_put("t", "good"), message.clone()])),
            refusal(put_for_ids(&mut gateway, "q", 0, vec![to_put("t", "good"), message.clone()])),
        ] {
            assert!(refused.message.contains(word), "{word:?} is not in {:?}", refused.message);
        }
    }
    for partition in [-1, 2, i16::MAX, i16::MIN] {
        let refused = refusal(gateway.put_message_with_pid("q".into(), partition, to_put("t", "v")));
        assert!(refused.message.contains("partition"), "{}", refused.message);
        let own = TMessage { partition_i_d: Some(partition), ..to_put("t", "v") };
        assert!(refusal(gateway.put_message("q".into(), own)).message.contains("partition"));
    }
    assert!(broker.scan("q", 0).is_empty() && broker.scan("q", 1).is_empty(), "all of a put or none");
    gateway.put_message("q".into(), TMessage { partition_i_d: Some(1), ..to_put("t", "own") }).unwrap();
    assert_eq!(broker.scan("q", 1).len(), 1, "a message that names its partition goes there");
}

/// A put of more than 16 MiB is refused with the limit; the connection may end, the broker goes on.
#[test]
fn a_put_beyond_the_request_limit() {
    let broker = Broker::start();
    broker.create("q", 1);
    for dialect in Dialect::ALL {
        let mut gateway = broker.try_gateway(dialect).unwrap();
        let messages = (0..5).map(|_| to_put("t", vec![b'x'; 4_000_000])).collect();
        let error = gateway.put_messages_with_pid("q".into(), 0, messages).unwrap_err();
        println!("{dialect:?}: {error}");
    }
    assert!(broker.scan("q", 0).is_empty());
    broker.put("q", 0, &["fine"]);
}

/// A backlog of large messages is cut by bytes: below what stock libraries take, and to what the subscription asked for.
#[test]
fn batches_are_cut_by_bytes() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut gateway = broker.gateway();
    for _ in 0..20 {
        let messages = (0..10).map(|_| to_put("t", vec![b'x'; 100_000])).collect();
        gateway.put_messages_with_pid("q".into(), 0, messages).unwrap();
    }
    let (large, usual, small) =
        (Consumer::speaking(Dialect { framed: true, compact: false }), Consumer::start(), Consumer::start());
    broker.subscribe("q", "large", &large.address(), &[("batch-bytes", "16000000"), ("batch-messages", "100000")]);
    broker.subscribe("q", "usual", &usual.address(), &[]);
    broker.subscribe("q", "small", &small.address(), &[("batch-bytes", "1024")]);
    for (consumer, limit) in [(&large, 16_000_000), (&usual, 1_048_576), (&small, 100_000)] {
        wait("all are pushed", PATIENCE * 2, || consumer.count() >= 200);
        let largest = consumer.calls().iter().map(|c| c.messages.iter().map(|m| m.value.len()).sum::<usize>()).max().unwrap();
        assert!(largest <= limit, "a call of {largest} bytes");
    }
    assert_eq!(small.calls().iter().map(|c| c.messages.len()).max(), Some(1), "a message that is larger goes alone");
    assert!(large.call_count() < 40, "large batches are made: {} calls", large.call_count());
}

/// A broker that allows it takes messages as large as a stock framed server can.
#[test]
fn the_largest_message_of_all() {
    let broker = Broker::with_flags(&["--max-message-bytes", "16000000"]);
    broker.create("q", 1);
    let consumer = Consumer::speaking(Dialect { framed: true, compact: false });
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let mut gateway = broker.gateway();
    gateway.put_message_with_pid("q".into(), 0, to_put("t", vec![b'x'; 16_000_000])).unwrap();
    let refused = refusal(gateway.put_message_with_pid("q".into(), 0, to_put("t", vec![b'x'; 16_000_001])));
    assert!(refused.message.contains("16000000"), "{}", refused.message);
    gateway.put_message_with_pid("q".into(), 0, to_put("t", "behind it")).unwrap();
    wait("both are pushed", PATIENCE, || consumer.has("behind it"));
    assert_eq!(consumer.accepted()[0].value.len(), 16_000_000);
}

/// Headers go through as they came.
#[test]
fn headers_travel() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let headers = std::collections::BTreeMap::from([
        ("trace".to_owned(), b"abc".to_vec()),
        (String::new(), Vec::new()),
        ("käse".to_owned(), vec![0, 0xff]),
    ]);
    let message = TMessage { headers: Some(headers.clone()), ..to_put("t", "v") };
    broker.gateway().put_message("q".into(), message).unwrap();
    wait("it is pushed", PATIENCE, || consumer.count() == 1);
    assert_eq!(consumer.accepted()[0].headers, headers);
    assert_eq!(broker.scan("q", 0)[0].headers, headers);
}

/// Nothing to put is no message: either way of taking it is fine, no empty call reaches a consumer for it.
#[test]
fn an_empty_batch_stores_nothing() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut gateway = broker.gateway();
    for result in [gateway.put_messages("q".into(), Vec::new()), gateway.put_messages_with_pid("q".into(), 0, Vec::new())] {
        if result.is_err() {
            assert_eq!(refusal(result).code, TErrorCode::INVALID);
        }
    }
    assert!(broker.scan("q", 0).is_empty());
    broker.put("q", 0, &["v"]);
}
