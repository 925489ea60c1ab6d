//! Consuming by fetching: what comes, when it comes, what a commit keeps, and what a wait costs.

use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hqueue_protocol::generated::{
    TErrorCode, TFetch, TFetched, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessageID, TSubscriberSpec,
};
use hqueue_protocol::rpc::{Fetch, FetchArgs, Method};
use hqueue_protocol::wire::Protocol;
use hqueue_tests::gateway::{Gateway, put_for_ids};
use hqueue_tests::message::to_put;
use hqueue_tests::{Answer, Broker, Consumer, Dialect, Id, Message, PATIENCE, raw, refusal, seed, wait};

/// From this position on.
fn from(position: &str) -> TFetch {
    TFetch { position: Some(position.to_owned()), max_messages: Some(100), wait_ms: Some(0), ..TFetch::default() }
}

/// Behind what this subscriber has committed.
fn behind(subscriber: &str) -> TFetch {
    TFetch { position: None, subscriber: Some(subscriber.into()), ..from("latest") }
}

fn waiting(what: TFetch, wait: Duration) -> TFetch {
    TFetch { wait_ms: Some(wait.as_millis() as i64), ..what }
}

fn texts(fetched: &TFetched) -> Vec<String> {
    fetched.messages.iter().flatten().map(|m| Message::from(m.clone()).text().to_owned()).collect()
}

fn next(fetched: &TFetched) -> Id {
    Id::from(fetched.next_i_d.as_ref().unwrap())
}

fn fetch(gateway: &mut Gateway, partition: i16, what: TFetch) -> TFetched {
    gateway.fetch("q".into(), partition, what).unwrap()
}

fn commit(gateway: &mut Gateway, subscriber: &str, partition: i16, next: Id) {
    gateway.commit("q".into(), subscriber.into(), partition, next.into()).unwrap();
}

/// A subscriber without an endpoint: a place where a position is kept.
fn add(broker: &Broker, name: &str, position: &str, topics: &[&str]) {
    let spec = TSubscriberSpec {
        name: Some(name.into()),
        addresses: Some(Vec::new()),
        topics: Some(topics.iter().map(|t| t.as_bytes().to_vec()).collect()),
        start_position: Some(position.to_owned()),
        ..TSubscriberSpec::default()
    };
    broker.admin().add_subscriber("q".into(), spec).unwrap();
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// Calls that have begun.
fn requests(broker: &Broker) -> f64 {
    broker.metrics().sum("hqueue_requests_total", &[])
}

fn connections(broker: &Broker) -> f64 {
    broker.metrics().sum("hqueue_connections", &[])
}

#[test]
fn messages_come_in_order_and_the_next_fetch_goes_on_behind_them() {
    let broker = Broker::start();
    broker.create("q", 2);
    let ids = broker.put("q", 0, &numbers(0..25));
    broker.put("q", 1, &["other"]);
    for dialect in Dialect::ALL {
        let mut gateway = broker.try_gateway(dialect).unwrap();
        let mut what = TFetch { max_messages: Some(10), ..from("earliest") };
        let mut seen = Vec::new();
        for expected in [10, 10, 5, 0] {
            let fetched = fetch(&mut gateway, 0, what.clone());
            assert_eq!(fetched.messages.as_ref().map_or(0, Vec::len), expected, "{dialect:?}");
            what.position = Some(next(&fetched).to_string());
            seen.extend(fetched.messages.into_iter().flatten().map(Message::from));
        }
        assert_eq!(seen.iter().map(|m| m.id).collect::<Vec<_>>(), ids);
        assert_eq!(seen.iter().map(Message::text).collect::<Vec<_>>(), numbers(0..25));
        assert!(seen.iter().all(|m| m.partition == 0 && m.topic == b"t"));
    }
}

#[test]
fn a_position_is_an_id_or_a_time() {
    let broker = Broker::start();
    broker.create("q", 1);
    let before = broker.put("q", 0, &["a"])[0];
    wait("a later time", PATIENCE, || now_ms() > before.timestamp + 20);
    let after = broker.put("q", 0, &["b", "c"]);
    let mut gateway = broker.gateway();
    let ago = format!("-{}ms", now_ms() - before.timestamp + 1000);
    let time = (before.timestamp + 1).to_string();
    for (position, expected) in [
        ("earliest".to_owned(), &["a", "b", "c"][..]),
        ("latest".to_owned(), &[]),
        (before.to_string(), &["a", "b", "c"]),
        (after[1].to_string(), &["c"]),
        (time, &["b", "c"]),
        (ago, &["a", "b", "c"]),
        ("2001-01-01T00:00:00Z".to_owned(), &["a", "b", "c"]),
    ] {
        assert_eq!(texts(&fetch(&mut gateway, 0, from(&position))), expected, "{position}");
    }
    // `latest` is fixed by the fetch: what comes behind it is found from its end on.
    let latest = next(&fetch(&mut gateway, 0, from("latest")));
    broker.put("q", 0, &["d"]);
    assert_eq!(texts(&fetch(&mut gateway, 0, from(&latest.to_string()))), ["d"]);
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

#[test]
fn a_wait_is_woken_by_the_put() {
    let broker = Broker::start();
    broker.create("q", 1);
    let (mut putter, mut gateway) = (broker.gateway(), broker.gateway());
    let mut position = next(&fetch(&mut gateway, 0, from("latest")));
    let mut took = Vec::new();
    for n in 0..20 {
        let begun = requests(&broker);
        let what = waiting(from(&position.to_string()), Duration::from_secs(30));
        let fetcher = std::thread::spawn(move || {
            let fetched = fetch(&mut gateway, 0, what);
            (fetched, Instant::now(), gateway)
        });
        wait("it waits", PATIENCE, || requests(&broker) > begun);
        let put = Instant::now();
        put_for_ids(&mut putter, "q", 0, vec![to_put("t", n.to_string())]).unwrap();
        let (fetched, at, again) = fetcher.join().unwrap();
        assert_eq!(texts(&fetched), [n.to_string()]);
        took.push(at.saturating_duration_since(put));
        (position, gateway) = (next(&fetched), again);
    }
    took.sort();
    println!("from the put to the fetch: median {:?}, longest {:?}", took[10], took[19]);
    assert!(took[10] < Duration::from_millis(50), "{took:?}");
}

#[test]
fn a_wait_that_nothing_ends_takes_its_time_and_no_longer() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut gateway = broker.gateway();
    let began = Instant::now();
    let fetched = fetch(&mut gateway, 0, waiting(from("earliest"), Duration::from_millis(300)));
    let took = began.elapsed();
    assert!(texts(&fetched).is_empty() && took >= Duration::from_millis(299) && took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_hundred_waits_cost_nothing_and_a_put_wakes_those_of_its_partition() {
    let broker = Broker::start();
    broker.create("q", 2);
    let begun = requests(&broker);
    let fetchers: Vec<_> = (0..100)
        .map(|n| {
            let mut gateway = broker.gateway();
            std::thread::spawn(move || {
                let fetched = fetch(&mut gateway, n % 2, waiting(from("earliest"), Duration::from_secs(30)));
                (n % 2, texts(&fetched), Instant::now())
            })
        })
        .collect();
    wait("all wait", PATIENCE, || requests(&broker) >= begun + 100.0);
    let (began, before) = (Instant::now(), broker.figures());
    wait("some seconds pass", PATIENCE, || began.elapsed() >= Duration::from_secs(2));
    let after = broker.figures();
    let (cpu, switches) = (after.cpu_millis - before.cpu_millis, after.voluntary_switches - before.voluntary_switches);
    println!("100 waits for 2 s: {cpu} ms of processor time, {switches} wake-ups");
    assert!(cpu <= 100 && switches < 200, "{cpu} ms of processor time, {switches} wake-ups");
    let put = Instant::now();
    broker.put("q", 1, &["one"]);
    wait("those of partition 1 end", PATIENCE, || fetchers.iter().filter(|f| f.is_finished()).count() == 50);
    let second = Instant::now();
    broker.put("q", 0, &["zero"]);
    for fetcher in fetchers {
        let (partition, found, at) = fetcher.join().unwrap();
        let (expected, since) = if partition == 1 { ("one", put) } else { ("zero", second) };
        assert_eq!(found, [expected]);
        assert!(at >= since && at - since < Duration::from_secs(5));
    }
}

#[test]
fn a_fetch_of_a_client_that_is_gone_leaves_nothing() {
    let broker = Broker::start();
    broker.create("q", 1);
    let (open, begun) = (connections(&broker), requests(&broker));
    let descriptors = broker.figures().descriptors;
    let what = waiting(from("earliest"), Duration::from_secs(30));
    let args = FetchArgs { queue_name: "q".into(), partition: 0, what };
    let call = raw::binary_call("fetch", &Fetch::encode_args(Protocol::Binary, &args));
    let peers: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, broker.port())).unwrap();
            std::io::Write::write_all(&mut stream, &call).unwrap();
            stream
        })
        .collect();
    wait("they wait", PATIENCE, || requests(&broker) >= begun + 50.0);
    let gone = Instant::now();
    drop(peers);
    wait("nothing is left", Duration::from_secs(5), || {
        connections(&broker) <= open && broker.figures().descriptors <= descriptors
    });
    println!("50 clients were forgotten within {:?}", gone.elapsed());
}

#[test]
fn a_wait_holds_up_neither_other_calls_nor_a_drop_nor_a_stop() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let long = || waiting(from("earliest"), Duration::from_secs(30));
    let wait_in_thread = |broker: &Broker| {
        let begun = requests(broker);
        let mut gateway = broker.gateway();
        let fetcher = std::thread::spawn(move || gateway.fetch("q".into(), 0, long()));
        wait("it waits", PATIENCE, || requests(broker) > begun);
        fetcher
    };
    // Another call behind it on the same connection: the wait ends for its sake.
    let encoded = Fetch::encode_args(Protocol::Binary, &FetchArgs { queue_name: "q".into(), partition: 0, what: long() });
    let calls = [raw::binary_call("fetch", &encoded), raw::binary_call("listQueues", &[0])].concat();
    let began = Instant::now();
    let raw::Reaction::Open(answer) = raw::send(broker.port(), &calls, Duration::from_secs(1)) else { panic!("it closes") };
    assert!(answer.windows(10).any(|w| w == b"listQueues"), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let fetcher = wait_in_thread(&broker);
    broker.admin().disable_queue("q".into()).unwrap();
    broker.admin().drop_queue("q".into()).unwrap();
    wait("it ends with its queue", Duration::from_secs(5), || fetcher.is_finished());
    assert_eq!(refusal(fetcher.join().unwrap()).code, TErrorCode::NOT_FOUND);
    broker.create("q", 1);
    let fetcher = wait_in_thread(&broker);
    let took = broker.stop();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(texts(&fetcher.join().unwrap().unwrap()).is_empty());
}

#[test]
fn what_was_committed_is_not_fetched_again_and_survives_a_kill() {
    let mut broker = Broker::start();
    broker.create("q", 2);
    broker.put("q", 0, &numbers(0..10));
    broker.put("q", 1, &["x"]);
    add(&broker, "s", "earliest", &[]);
    for n in 0..5 {
        let mut gateway = broker.gateway();
        let first = fetch(&mut gateway, 0, TFetch { max_messages: Some(2), ..behind("s") });
        assert_eq!(texts(&first), numbers(n * 2..n * 2 + 2));
        assert_eq!(first, fetch(&mut gateway, 0, TFetch { max_messages: Some(2), ..behind("s") }), "not committed: again");
        commit(&mut gateway, "s", 0, next(&first));
        // The instant behind the answer.
        broker.kill();
        broker.restart();
        assert_eq!(broker.subscription("q", "s").lag(), 9 - 2 * n as i64);
    }
    let mut gateway = broker.gateway();
    assert!(texts(&fetch(&mut gateway, 0, behind("s"))).is_empty());
    assert_eq!(texts(&fetch(&mut gateway, 1, behind("s"))), ["x"]);
}

#[test]
fn a_commit_never_goes_back() {
    let broker = Broker::start();
    broker.create("q", 1);
    let ids = broker.put("q", 0, &numbers(0..10));
    add(&broker, "s", "earliest", &[]);
    let mut gateway = broker.gateway();
    commit(&mut gateway, "s", 0, ids[7]);
    for earlier in [ids[3], ids[7], ids[0], Id { timestamp: 0, sequence: 0 }] {
        commit(&mut gateway, "s", 0, earlier);
        assert_eq!(texts(&fetch(&mut gateway, 0, behind("s"))), numbers(7..10));
    }
    // At once, from many: the furthest stays.
    std::thread::scope(|scope| {
        for id in &ids {
            let mut gateway = broker.gateway();
            scope.spawn(move || commit(&mut gateway, "s", 0, *id));
        }
    });
    assert_eq!(texts(&fetch(&mut gateway, 0, behind("s"))), ["9"]);
    // Behind everything: what comes later is not done.
    commit(&mut gateway, "s", 0, Id { timestamp: ids[9].timestamp + 10_000, sequence: 0 });
    broker.put("q", 0, &["later"]);
    assert_eq!(texts(&fetch(&mut gateway, 0, behind("s"))), ["later"]);
    let far = TMessageID::new(ids[9].timestamp + 1_000_000_000, 0);
    let refused = refusal(gateway.commit("q".into(), "s".into(), 0, far));
    assert!(refused.code == TErrorCode::INVALID && refused.message.contains("future"), "{refused:?}");
}

/// Random commits and kills: what is fetched after a restart begins behind the furthest commit that was answered.
#[test]
fn commits_are_kept_in_any_order() {
    let mut random = seed("commits_are_kept_in_any_order");
    let mut broker = Broker::start();
    broker.create("q", 3);
    let ids: Vec<Vec<Id>> = (0..3).map(|p| broker.put("q", p, &numbers(0..50))).collect();
    add(&broker, "s", "earliest", &[]);
    let mut furthest = [0; 3];
    for _ in 0..4 {
        let mut gateway = broker.gateway();
        for _ in 0..15 {
            let (partition, n) = (random.usize(0..3), random.usize(0..50));
            commit(&mut gateway, "s", partition as i16, ids[partition][n]);
            furthest[partition] = furthest[partition].max(n);
        }
        broker.kill();
        broker.restart();
        for (partition, n) in furthest.iter().enumerate() {
            let found = fetch(&mut broker.gateway(), partition as i16, behind("s"));
            assert_eq!(texts(&found), numbers(*n..50));
        }
    }
}

#[test]
fn topics_are_those_of_the_request_or_of_the_subscriber() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut gateway = broker.gateway();
    let put = |gateway: &mut Gateway, topics: &[&str]| {
        put_for_ids(gateway, "q", 0, topics.iter().map(|t| to_put(*t, *t)).collect()).unwrap().1
    };
    add(&broker, "b", "earliest", &["b"]);
    let ids = put(&mut gateway, &["a", "b", "c", "a", "b", "c", "c"]);
    let wanted =
        |topics: &[&str], what: TFetch| TFetch { topics: Some(topics.iter().map(|t| t.as_bytes().to_vec()).collect()), ..what };
    assert_eq!(texts(&fetch(&mut gateway, 0, behind("b"))), ["b", "b"]);
    assert_eq!(texts(&fetch(&mut gateway, 0, wanted(&["c", "a"], behind("b")))), ["a", "c", "a", "c", "c"]);
    assert_eq!(texts(&fetch(&mut gateway, 0, wanted(&["a"], from("earliest")))), ["a", "a"]);
    assert_eq!(texts(&fetch(&mut gateway, 0, TFetch { subscriber: Some("b".into()), ..from(&ids[2].to_string()) })), ["b"]);
    // The next fetch begins past what nobody wants, also if that was all.
    let none = fetch(&mut gateway, 0, wanted(&["nothing"], from("earliest")));
    assert!(texts(&none).is_empty() && next(&none) > ids[6], "{none:?}");
    let all = fetch(&mut gateway, 0, behind("b"));
    assert!(next(&all) > ids[6]);
    commit(&mut gateway, "b", 0, next(&all));
    assert_eq!(broker.subscription("q", "b").lag(), 0);
    // A wait sleeps on over what is not wanted.
    let mut waiter = broker.gateway();
    let begun = requests(&broker);
    let fetcher = std::thread::spawn(move || fetch(&mut waiter, 0, waiting(behind("b"), Duration::from_secs(30))));
    wait("it waits", PATIENCE, || requests(&broker) > begun);
    for _ in 0..20 {
        put(&mut gateway, &["a", "c"]);
    }
    assert!(!fetcher.is_finished());
    put(&mut gateway, &["a", "b", "c"]);
    assert_eq!(texts(&fetcher.join().unwrap()), ["b"]);
}

#[test]
fn bad_requests_are_refused_with_the_limit() {
    let broker = Broker::start();
    broker.create("q", 2);
    let spec = TSubscriberSpec {
        name: Some("one".into()),
        partitions: Some(vec![1]),
        start_position: None,
        ..TSubscriberSpec::default()
    };
    broker.admin().add_subscriber("q".into(), spec).unwrap();
    let mut gateway = broker.gateway();
    let max = |n| TFetch { max_messages: n, ..from("earliest") };
    let wait = |ms| TFetch { wait_ms: Some(ms), ..from("earliest") };
    let (invalid, missing) = (TErrorCode::INVALID, TErrorCode::NOT_FOUND);
    for (partition, what, code, says) in [
        (0, max(Some(0)), invalid, "100000"),
        (0, max(None), invalid, "100000"),
        (0, max(Some(-5)), invalid, "-5"),
        (0, max(Some(100_001)), invalid, "100000"),
        (0, wait(-1), invalid, "30000"),
        (0, wait(30_001), invalid, "30000"),
        (0, wait(i64::MAX), invalid, "30000"),
        (2, from("earliest"), invalid, "partition 2"),
        (-1, from("earliest"), invalid, "partition -1"),
        (0, from("yesterday"), invalid, "yesterday"),
        (0, from("9999999999999:0"), invalid, "future"),
        (0, from(""), invalid, "position"),
        (0, behind("nobody"), missing, "nobody"),
        (0, behind("../x"), missing, "../x"),
        (0, behind("one"), missing, "partition 0"),
    ] {
        let refused = refusal(gateway.fetch("q".into(), partition, what.clone()));
        assert!(refused.code == code && refused.message.contains(says), "{what:?}: {refused:?}");
    }
    let id = TMessageID::new(5, 0);
    for (queue, subscriber, partition, next, code, says) in [
        ("q", "one", 1, TMessageID::new(-1, 0), invalid, "-1:0"),
        ("q", "one", 1, TMessageID::new(5, -1), invalid, "5:-1"),
        ("q", "one", 0, id.clone(), missing, "partition 0"),
        ("q", "one", 7, id.clone(), invalid, "partition 7"),
        ("q", "nobody", 1, id.clone(), missing, "nobody"),
        ("nowhere", "one", 1, id, missing, "nowhere"),
    ] {
        let refused = refusal(gateway.commit(queue.into(), subscriber.into(), partition, next));
        assert!(refused.code == code && refused.message.contains(says), "{refused:?}");
    }
    assert_eq!(refusal(gateway.fetch("nowhere".into(), 0, from("earliest"))).code, missing);
    // And it goes on.
    broker.put("q", 1, &["a"]);
    assert_eq!(texts(&fetch(&mut gateway, 1, behind("one"))), ["a"]);
}

#[test]
fn a_reply_is_bounded_and_comes_from_the_disk_too() {
    let broker = Broker::with_flags(&["--tail-cache-bytes", "1048576"]);
    broker.create("q", 1);
    let value = "v".repeat(1 << 20);
    for _ in 0..20 {
        broker.put("q", 0, &[value.as_str()]);
    }
    let mut gateway = broker.gateway();
    let (mut what, mut seen, mut replies) = (TFetch { max_messages: Some(100_000), ..from("earliest") }, 0, 0);
    while seen < 20 {
        let fetched = fetch(&mut gateway, 0, what.clone());
        let count = fetched.messages.as_ref().map_or(0, Vec::len);
        assert!((1..=8).contains(&count), "{count} MiB in a reply");
        what.position = Some(next(&fetched).to_string());
        (seen, replies) = (seen + count, replies + 1);
    }
    assert_eq!((seen, replies), (20, 3));
}

#[test]
fn messages_that_expire_unread_are_counted_once() {
    let broker = Broker::start();
    broker.create_with_ttl("q", 1, 1);
    add(&broker, "s", "earliest", &[]);
    broker.put("q", 0, &numbers(0..7));
    let mut gateway = broker.gateway();
    wait("they expire", PATIENCE, || texts(&fetch(&mut gateway, 0, behind("s"))).is_empty());
    for _ in 0..3 {
        assert!(texts(&fetch(&mut gateway, 0, behind("s"))).is_empty());
    }
    broker.put("q", 0, &["new"]);
    let found = fetch(&mut gateway, 0, behind("s"));
    assert_eq!(texts(&found), ["new"]);
    commit(&mut gateway, "s", 0, next(&found));
    assert_eq!(broker.subscription("q", "s").expired(), 7);
}

/// A subscriber that is called may be helped over a message by hand: what is committed is in nobody's way.
#[test]
fn a_commit_past_a_message_that_blocks_goes_on_behind_it() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|messages| Answer::Value(if messages.iter().any(|m| m.text() == "bad") { -1 } else { 0 }));
    let options = [("on-poison", "block"), ("max-attempts", "1"), ("retry-min", "10ms"), ("retry-max", "20ms")];
    broker.subscribe("q", "s", &consumer.address(), &options);
    let ids = broker.put("q", 0, &["bad", "good"]);
    wait("it is blocked", PATIENCE, || broker.subscription("q", "s").state() == "blocked");
    assert_eq!(texts(&fetch(&mut broker.gateway(), 0, behind("s"))), ["bad", "good"]);
    commit(&mut broker.gateway(), "s", 0, ids[1]);
    wait("the rest comes", PATIENCE, || consumer.accepted().iter().any(|m| m.text() == "good"));
    wait("it is not blocked any more", PATIENCE, || broker.subscription("q", "s").state() == "active");
    broker.wait_for_no_lag("q", "s");
}
