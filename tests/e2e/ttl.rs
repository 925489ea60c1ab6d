//! How long messages are kept, and what becomes of those that nobody read in time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hqueue_protocol::generated::{
    TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessage, TMessageID, TMessageScan, TScanReport,
};
use hqueue_tests::gateway::everything;
use hqueue_tests::{Answer, Broker, Consumer, PATIENCE, refusal, wait};

const QUICK: [(&str, &str); 2] = [("retry-min", "20ms"), ("retry-max", "100ms")];

#[test]
fn a_message_is_there_for_its_time_and_not_longer() {
    let broker = Broker::start();
    broker.create_with_ttl("q", 1, 2);
    let ttl = Duration::from_secs(2);
    let before = Instant::now();
    broker.put("q", 0, &["a", "b"]);
    let acknowledged = Instant::now();
    loop {
        let asked = Instant::now();
        let there = broker.scan("q", 0).len();
        if there == 2 {
            assert!(asked < acknowledged + ttl + Duration::from_secs(5), "still there long after its time");
            continue;
        }
        assert!(Instant::now() >= before + ttl, "gone after {:?}", before.elapsed());
        break;
    }
    wait("both are gone", PATIENCE, || broker.scan("q", 0).is_empty());
}

/// What expires unread is counted, exactly, and said; what has its time before it is not touched; the subscription goes on.
#[test]
fn what_expires_unread_is_counted() {
    let broker = Broker::start();
    broker.create_with_ttl("short", 2, 2);
    broker.create_with_ttl("long", 2, 3600);
    let mut consumer = Consumer::start();
    consumer.stop();
    let values: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    for queue in ["short", "long"] {
        broker.subscribe(queue, "s", &consumer.address(), &QUICK);
        broker.put(queue, 0, &values[..200]);
        broker.put(queue, 1, &values[200..]);
    }
    wait("all have expired", PATIENCE, || broker.subscription("short", "s").expired() >= 300);
    wait("the lag is gone with them", PATIENCE, || broker.subscription("short", "s").lag() == 0);
    assert_eq!(broker.subscription("short", "s").expired(), 300);
    let long = broker.subscription("long", "s");
    assert_eq!((long.expired(), long.lag()), (0, 300));
    consumer.resume();
    wait("the others come", PATIENCE, || consumer.count() >= 300);
    broker.put("short", 0, &["next"]);
    wait("the subscription goes on", PATIENCE, || consumer.has("next"));
    let short = broker.subscription("short", "s");
    assert_eq!((short.expired(), consumer.count()), (300, 301));
    assert!(broker.log().contains("expired unread"), "the log says so");
}

/// Some are consumed in time, the others are not: together they are all.
#[test]
fn consumed_and_expired_are_all() {
    let broker = Broker::start();
    broker.create_with_ttl("q", 1, 2);
    let consumer = Consumer::answering(|messages| {
        let good = messages.iter().take_while(|m| m.text() != "stop").count() as i32;
        Answer::Value(if good > 0 { good } else { -1 })
    });
    // Until it expires, and not until it is a dead letter.
    let options = [QUICK.as_slice(), &[("max-attempts", "1000000")]].concat();
    broker.subscribe("q", "s", &consumer.address(), &options);
    broker.put("q", 0, &["1", "2", "3", "stop", "5", "6"]);
    wait("the first come", PATIENCE, || consumer.count() == 3);
    wait("the others expire", PATIENCE, || broker.subscription("q", "s").lag() == 0);
    let status = broker.subscription("q", "s");
    assert_eq!((status.delivered(), status.expired()), (3, 3));
    broker.put("q", 0, &["7"]);
    wait("it goes on", PATIENCE, || consumer.has("7"));
}

/// A scanner whose messages expire before they are read says how many they were.
#[test]
fn a_scanner_says_what_has_expired() {
    let broker = Broker::start();
    broker.create_with_ttl("q", 1, 2);
    let ids = broker.put("q", 0, &["1", "2", "3"]);
    let mut gateway = broker.gateway();
    let from = |n: usize| TMessageScan { start_i_d: Some(ids[n].into()), ..everything() };
    let scanner = gateway.message_scanner_open("q".into(), 0, from(1)).unwrap();
    wait("they expire", PATIENCE, || broker.scan("q", 0).is_empty());
    assert!(gateway.message_scanner_get_list(scanner, 10).unwrap().is_empty());
    assert_eq!(gateway.message_scanner_report(scanner).unwrap(), TScanReport::new(2, 0));
    // One that begins there later is told the same.
    broker.put("q", 0, &["4"]);
    let scanner = gateway.message_scanner_open("q".into(), 0, from(2)).unwrap();
    assert_eq!(gateway.message_scanner_get_list(scanner, 10).unwrap().len(), 1);
    assert_eq!(gateway.message_scanner_report(scanner).unwrap(), TScanReport::new(1, 0));
}

/// A message is as old as its arrival, whatever id its putter has thought up.
#[test]
fn ids_that_clients_set_are_ignored() {
    let broker = Broker::start();
    broker.create("q", 1);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let began = now();
    let mut gateway = broker.gateway();
    let times = [began * 1000, began / 1000, 0, -1, i64::MAX, i64::MIN, 4_102_444_800_000];
    for (n, time) in times.into_iter().enumerate() {
        let id = TMessageID::new(time, if n % 2 == 0 { -1 } else { i16::MAX });
        let odd = TMessage::new(id, 0, b"t".to_vec(), n.to_string().into_bytes(), None);
        gateway.put_message("q".into(), odd).unwrap();
        broker.put("q", 0, &["neighbour"]);
    }
    let stored = broker.scan("q", 0);
    assert_eq!(stored.len(), times.len() * 2);
    hqueue_tests::order::check_rising(&stored);
    for message in stored {
        assert!((began..=now()).contains(&message.id.timestamp), "{}", message.id);
    }
}

#[test]
fn odd_times_to_live() {
    let broker = Broker::start();
    let create = |name: &str, ttl: i64| broker.admin().create_queue(hqueue_tests::queue_spec(name, 1, ttl));
    for ttl in [0, -1, i64::MIN] {
        let refused = refusal(create("q", ttl));
        assert_eq!(refused.code, TErrorCode::INVALID);
        assert!(refused.message.contains(&ttl.to_string()), "{}", refused.message);
    }
    for (n, ttl) in [1 << 31, i64::MAX / 1000, i64::MAX].into_iter().enumerate() {
        let name = format!("q{n}");
        match create(&name, ttl) {
            Ok(_) => {
                broker.put(&name, 0, &["kept"]);
                assert_eq!(broker.scan(&name, 0).len(), 1, "a ttl of {ttl} s keeps a message");
                assert_eq!(broker.admin().describe_queue(name.clone().into()).unwrap().ttl_seconds, Some(ttl));
            }
            Err(error) => {
                let refused = refusal::<()>(Err(error));
                assert_eq!(refused.code, TErrorCode::INVALID);
                assert!(refused.message.contains(&ttl.to_string()), "{}", refused.message);
            }
        }
    }
}

/// Messages expire while the broker is down, too; the count begins anew with the process, the messages do not come back.
#[test]
fn expiry_over_a_restart() {
    let mut broker = Broker::start();
    broker.create_with_ttl("q", 1, 2);
    let consumer = Consumer::start();
    broker.put("q", 0, &["old"]);
    broker.kill();
    // The time to live has to pass while nobody is there.
    std::thread::sleep(Duration::from_millis(2500));
    broker.restart();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    broker.put("q", 0, &["new"]);
    wait("the new one comes", PATIENCE, || consumer.has("new"));
    assert_eq!(consumer.values(), ["new"]);
}
