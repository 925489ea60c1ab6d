//! What goes wrong silently is said: messages that are about to expire unread; and traces of what is pushed, for those who ask.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::TMessage;
use hqueue_tests::{Broker, Consumer, PATIENCE, Setup, gateway, wait};

/// The watchdog looks every 30 s.
#[test]
fn who_is_far_behind_is_warned_of_before_messages_expire() {
    let broker = Broker::start();
    broker.create_with_ttl("q", 1, 20);
    let mut consumer = Consumer::start();
    consumer.stop();
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "100ms"), ("retry-max", "200ms")]);
    let fine = Consumer::start();
    broker.subscribe("q", "fine", &fine.address(), &[]);
    let mut last = Instant::now() - Duration::from_secs(1);
    // The oldest one that is left is then nearly as old as it may be, whenever the watchdog looks.
    wait("it is said", PATIENCE * 3, || {
        if last.elapsed() >= Duration::from_secs(1) {
            broker.put("q", 0, &["a"]);
            last = Instant::now();
        }
        broker.log().contains("about to expire unread")
    });
    assert!(fine.has("a"));
    let line = broker.log().lines().find(|line| line.contains("about to expire")).unwrap().to_owned();
    assert!(line.contains("subscriber=\"s\"") || line.contains("subscriber=s"), "{line}");
    assert!(line.contains("ttl_seconds=20"), "{line}");
    assert!(
        broker.log().lines().filter(|line| line.contains("about to expire")).count() == 1,
        "once, and of the one that is behind"
    );
    wait("what expires is counted", PATIENCE, || broker.subscription("q", "s").expired() > 0);
}

#[test]
fn messages_are_traced_for_those_who_ask() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let setup = Setup { before: Some("export HQUEUE_LOG=info,hqueue_broker::trace=debug".to_owned()), ..Setup::default() };
    let broker = Broker::with(setup);
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let headers = BTreeMap::from([("traceparent".to_owned(), parent.as_bytes().to_vec())]);
    let traced = TMessage::new(None, None, b"t".to_vec(), b"a".to_vec(), headers);
    let (_, ids) = gateway::put_for_ids(&mut broker.gateway(), "q", 0, vec![traced]).unwrap();
    broker.put("q", 0, &["not traced"]);
    wait("both are pushed", PATIENCE, || consumer.count() == 2);
    let log = broker.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("pushed")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(parent) && lines[0].contains(&ids[0].to_string()), "{lines:?}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("put{")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(parent) && lines[0].contains(&ids[0].to_string()), "{lines:?}");
}
