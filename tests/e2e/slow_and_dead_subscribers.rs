//! A subscriber that is dead, hangs or is slow delays neither puts nor others, and misses nothing afterwards.

use std::time::{Duration, Instant};

use hqueue_protocol::generated::THQueueServiceSyncClient;
use hqueue_tests::message::to_put;
use hqueue_tests::order::check_order;
use hqueue_tests::silent::{BlackHole, HangsUp, NeverReads};
use hqueue_tests::{Answer, Broker, Consumer, PATIENCE, free_port, wait};

/// How long puts and their delivery to a healthy subscriber take.
struct Pace {
    slowest_put: Duration,
    delivered: Duration,
}

fn pace(broker: &Broker, healthy: &Consumer, puts: usize) -> Pace {
    let before = healthy.count();
    let mut gateway = broker.gateway();
    let began = Instant::now();
    let mut slowest_put = Duration::ZERO;
    for n in 0..puts {
        let put = Instant::now();
        let messages = (0..5).map(|_| to_put("t", vec![b'x'; 1000])).collect();
        gateway.put_messages_with_pid("q".into(), (n % 4) as i16, messages).unwrap();
        slowest_put = slowest_put.max(put.elapsed());
    }
    wait("the healthy subscriber has all", PATIENCE, || healthy.count() >= before + puts * 5);
    Pace { slowest_put, delivered: began.elapsed() }
}

#[test]
fn the_dead_do_not_slow_the_living() {
    let mut broker = Broker::start();
    broker.create("q", 4);
    let healthy = Consumer::start();
    broker.subscribe("q", "healthy", &healthy.address(), &[]);
    let alone = pace(&broker, &healthy, 200);

    let (hole, silent, rude) = (BlackHole::listen(), NeverReads::listen(), HangsUp::listen());
    let frozen = Consumer::start();
    frozen.freeze();
    for n in 0..5 {
        let nobody = format!("127.0.0.1:{}", free_port());
        for (kind, address) in
            [("refuses", nobody), ("hole", hole.address()), ("silent", silent.address()), ("rude", rude.address())]
        {
            broker.subscribe("q", &format!("{kind}{n}"), &address, &[("retry-min", "100ms"), ("call-timeout", "1s")]);
        }
    }
    broker.subscribe("q", "frozen", &frozen.address(), &[("retry-min", "100ms"), ("retry-max", "200ms"), ("call-timeout", "1s")]);
    let crowded = pace(&broker, &healthy, 200);
    println!("delivered in {:?} alone, in {:?} beside 21 dead subscribers", alone.delivered, crowded.delivered);
    println!("slowest put {:?} alone, {:?} beside them", alone.slowest_put, crowded.slowest_put);
    // Not a measurement: a wait for one of the dead would be their timeout, a second or more, many times.
    assert!(crowded.delivered < alone.delivered * 10 + Duration::from_secs(2));
    assert!(crowded.slowest_put < alone.slowest_put * 10 + Duration::from_millis(900));
    for dead in ["refuses0", "hole0", "silent0", "rude0", "frozen"] {
        wait("what is wrong is shown", PATIENCE, || !broker.subscription("q", dead).last_error().is_empty());
        let status = broker.subscription("q", dead);
        assert_eq!((status.lag(), status.state()), (2000, "retrying"), "{dead}: {}", status.last_error());
    }
    frozen.thaw();
    wait("who comes back catches up", PATIENCE, || frozen.count() >= 2000);
    broker.wait_for_no_lag("q", "frozen");
    check_order(&frozen.accepted());
    let took = broker.stop();
    assert!(took < Duration::from_secs(10), "the dead do not hold a stop: {took:?}");
}

/// The peer takes a part of a large batch and reads no further, so that the write blocks.
#[test]
fn a_write_that_blocks_has_a_deadline() {
    let broker = Broker::start();
    broker.create("q", 2);
    let silent = NeverReads::listen();
    let options = [
        ("batch-bytes", "16000000"),
        ("call-timeout", "1s"),
        ("transport", "buffered"),
        ("protocol", "binary"),
        ("retry-min", "50ms"),
    ];
    broker.subscribe("q", "silent", &silent.address(), &options);
    let healthy = Consumer::start();
    broker.subscribe("q", "healthy", &healthy.address(), &[]);
    let mut gateway = broker.gateway();
    for _ in 0..16 {
        gateway.put_message_with_pid("q".into(), 0, to_put("t", vec![b'x'; 1 << 20])).unwrap();
    }
    wait("the healthy one has all", PATIENCE, || healthy.count() >= 16);
    wait("the deadline is shown", PATIENCE, || {
        let error = broker.subscription("q", "silent").last_error().to_lowercase();
        error.contains("time") || error.contains("within") || error.contains("deadline")
    });
    assert_eq!(broker.subscription("q", "silent").lag(), 16);
}

#[test]
fn a_slow_subscriber_keeps_its_own_pace() {
    let broker = Broker::start();
    broker.create("q", 1);
    let slow = Consumer::answering(|_| Answer::Slow(Duration::from_millis(100), 0));
    let healthy = Consumer::start();
    broker.subscribe("q", "slow", &slow.address(), &[("batch-messages", "20")]);
    broker.subscribe("q", "healthy", &healthy.address(), &[]);
    let values: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    for batch in values.chunks(10) {
        broker.put("q", 0, batch);
    }
    wait("the healthy one has all", PATIENCE, || healthy.count() >= 400);
    assert!(slow.count() < 400, "the slow one is still at it");
    wait("the slow one has all", PATIENCE, || slow.count() >= 400);
    assert_eq!(slow.values(), values);
    assert_eq!(healthy.values(), values);
}

/// Repetitions are spaced out: doubling waits up to the longest, not a hammer.
#[test]
fn an_outage_is_not_hammered() {
    let broker = Broker::start();
    broker.create("q", 4);
    let rude = HangsUp::listen();
    broker.subscribe(
        "q",
        "s",
        &rude.address(),
        &[("retry-min", "100ms"), ("retry-max", "800ms"), ("transport", "buffered"), ("protocol", "binary")],
    );
    for partition in 0..4 {
        broker.put("q", partition, &["a"; 100]);
    }
    let began = Instant::now();
    let observed = Duration::from_secs(4);
    wait("some seconds pass", PATIENCE, || began.elapsed() >= observed);
    // 100, 200, 400, 800, 800, ... ms with 20 % jitter: about 8 rounds; each may ask and send, in four partitions.
    println!("{} connections in {observed:?}", rude.count());
    assert!(rude.count() >= 3, "it is tried again");
    assert!(rude.count() <= 80, "{} connections in {observed:?}", rude.count());
}

/// An outage writes a line when it begins, not one for each attempt.
#[test]
fn an_outage_does_not_fill_the_log() {
    let broker = Broker::start();
    broker.create("q", 2);
    for n in 0..20 {
        let address = format!("127.0.0.1:{}", free_port());
        broker.subscribe("q", &format!("s{n}"), &address, &[("retry-min", "10ms"), ("retry-max", "20ms")]);
    }
    // Two endpoints of one subscription, each with an error of its own.
    let (one, two) = (free_port(), HangsUp::listen());
    let addresses = format!("127.0.0.1:{one},{}", two.address());
    let options = ["--retry-min", "10ms", "--retry-max", "20ms", "--from", "earliest"];
    let words = ["add_subscriber", "q", "both", "--address", &addresses].iter().chain(&options).copied().collect::<Vec<_>>();
    broker.run(&words).text();
    let quiet = broker.log().len();
    broker.put("q", 0, &["a"]);
    broker.put("q", 1, &["b"]);
    let began = Instant::now();
    wait("some seconds of attempts", PATIENCE, || began.elapsed() >= Duration::from_secs(3));
    let log = broker.log();
    let lines = log[quiet..].lines().count();
    println!("{lines} lines, {} bytes", log.len() - quiet);
    assert!(lines <= 22 * 5, "{lines} lines for 22 endpoints in 3 s");
}

/// What waits for the dead stays on disk.
#[test]
fn memory_does_not_grow_with_what_waits() {
    let broker = Broker::with_flags(&["--tail-cache-bytes", "8388608"]);
    broker.create("q", 4);
    let frozen = Consumer::start();
    broker.subscribe("q", "frozen", &frozen.address(), &[("call-timeout", "2s"), ("batch-bytes", "1000000")]);
    broker.put("q", 0, &["first"]);
    wait("the first is pushed", PATIENCE, || frozen.count() == 1);
    frozen.freeze();
    let before = broker.figures().rss_bytes;
    let mut gateway = broker.gateway();
    for n in 0..200 {
        let messages = (0..500).map(|_| to_put("t", vec![b'x'; 1000])).collect();
        gateway.put_messages_with_pid("q".into(), n % 4, messages).unwrap();
    }
    let grown = broker.figures().rss_bytes.saturating_sub(before) >> 20;
    println!("100 MB wait: {grown} MiB more in memory");
    assert!(grown < 80, "{grown} MiB");
}
