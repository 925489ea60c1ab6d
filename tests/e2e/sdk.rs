//! The SDK against a broker process: puts, scans and subscribers of Rust programs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hqueue::{
    ErrorCode, HQueue, Listeners, Message, MessageId, MessageListener, NewMessage, Position, Producer, ProducerOptions,
    QueueSpec, Scan, Subscription, Target, partition_of_key,
};
use hqueue_tests::{Broker, PATIENCE};

/// Waits without holding a thread of the runtime.
#[track_caller]
fn until<'a>(what: &'a str, mut condition: impl FnMut() -> bool + 'a) -> impl Future<Output = ()> + 'a {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < deadline, "{caller}: not within {PATIENCE:?}: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn connect(broker: &Broker, partitions: i32) -> (HQueue, hqueue::Queue) {
    let hqueue = HQueue::connect(&broker.url()).await.unwrap();
    let spec = QueueSpec { name: "q".to_owned(), partitions, ttl_seconds: 3600, ..QueueSpec::default() };
    hqueue.admin().create_queue(&spec).await.unwrap();
    let queue = hqueue.queue("q").unwrap();
    (hqueue, queue)
}

#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<String>>>);

impl Notebook {
    fn add(&self, value: &[u8]) {
        self.0.lock().unwrap().push(String::from_utf8_lossy(value).into_owned());
    }

    fn values(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn puts_and_scans() {
    let broker = Broker::start();
    let (_, queue) = connect(&broker, 4).await;
    assert_eq!(queue.partitions().await.unwrap(), 4);
    let one = queue.put_to(2, "red", "one").await.unwrap();
    let batch = [NewMessage::new("red", "two"), NewMessage::new("blue", "three").header("h", "x")];
    let placed = queue.put_batch_to(2, &batch).await.unwrap();
    assert!(one.id < placed.ids[0] && placed.ids[0] < placed.ids[1] && placed.partition == 2);
    let keyed = queue.put_keyed("anna", "red", "four").await.unwrap();
    assert_eq!(keyed.partition, partition_of_key(b"anna", 4), "the documented hash");
    assert_eq!(queue.put_keyed("anna", "red", "five").await.unwrap().partition, keyed.partition);
    queue.put("green", "six").await.unwrap();
    queue.put_batch(&batch).await.unwrap();

    let mut scanner = queue.partition_scanner(2, Scan::all().from(placed.ids[0]).until(placed.ids[1]));
    let message = scanner.next().await.unwrap().unwrap();
    assert_eq!((message.id, &message.value[..], message.partition), (placed.ids[0], &b"two"[..], 2));
    assert!(scanner.next().await.unwrap().is_none(), "without the stop");
    scanner.close().await;
    let mut scanner = queue.queue_scanner(Scan::all().topic("blue")).await.unwrap();
    let mut blue = Vec::new();
    loop {
        let some = scanner.next_batch(100).await.unwrap();
        if some.is_empty() {
            break;
        }
        blue.extend(some);
    }
    assert_eq!(blue.len(), 2);
    assert_eq!(blue[0].headers, [("h".to_owned(), "x".into())]);
    let mut scanner = queue.queue_scanner(Scan::all()).await.unwrap();
    let mut partitions = Vec::new();
    while let Some(message) = scanner.next().await.unwrap() {
        partitions.push(message.partition);
    }
    assert_eq!(partitions.len(), 8);
    assert!(partitions.is_sorted(), "partition by partition");
    let scans = BTreeMap::from([(2, Scan::all().from(placed.ids[1])), (keyed.partition, Scan::all().topic("none"))]);
    let mut scanner = queue.combined_partition_scanner(scans);
    let found = scanner.next_batch(100).await.unwrap();
    assert!(found.iter().any(|m| m.id == placed.ids[1]) || keyed.partition == 2, "a scan for each partition");
}

/// Many tasks put through one producer: all are there, those of one task in order, and batches were made.
#[tokio::test(flavor = "multi_thread")]
async fn a_producer_gathers() {
    let broker = Broker::start();
    let (_, queue) = connect(&broker, 2).await;
    let producer: Producer = queue.producer(ProducerOptions::default()).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..50 {
        let producer = producer.clone();
        tasks.spawn(async move {
            let mut pending = Vec::new();
            for n in 0..100 {
                pending.push(
                    producer.enqueue(Target::Partition(task % 2), NewMessage::new("t", format!("{task} {n}"))).await.unwrap(),
                );
            }
            let mut ids = Vec::new();
            for put in pending {
                ids.push(put.placed().await.unwrap().id);
            }
            assert!(ids.is_sorted(), "task {task}");
        });
    }
    tasks.join_all().await;
    producer.close().await.unwrap();
    let stored = [broker.scan("q", 0), broker.scan("q", 1)].concat();
    assert_eq!(stored.len(), 5000);
    for task in 0..50 {
        let own: Vec<String> =
            stored.iter().map(|m| m.text().to_owned()).filter(|t| t.starts_with(&format!("{task} "))).collect();
        assert_eq!(own, (0..100).map(|n| format!("{task} {n}")).collect::<Vec<_>>());
    }
    let requests = broker.metrics().sum("hqueue_requests_total", &[]);
    assert!(requests < 2000.0, "{requests} requests for 5000 messages");
    let closed = producer.put(Target::Any, NewMessage::new("t", "late")).await.unwrap_err();
    assert_eq!(closed, hqueue::Error::Closed);
}

/// Fails at one message, for a while.
struct Picky {
    seen: Notebook,
    failures: AtomicU64,
}

impl MessageListener for Picky {
    type Error = String;

    async fn consume(&self, message: &Message) -> Result<(), String> {
        if message.value == "7" && self.failures.fetch_add(1, Ordering::Relaxed) < 2 {
            return Err("seven is not for me today".to_owned());
        }
        self.seen.add(&message.value);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_fails_sees_the_message_again() {
    let broker = Broker::start();
    let (hqueue, queue) = connect(&broker, 1).await;
    let seen = Notebook::default();
    let picky = Picky { seen: seen.clone(), failures: AtomicU64::new(0) };
    let mut subscriber = queue.create_subscriber(Subscription::new("s").from(Position::Earliest), Listeners::one(picky));
    subscriber.start().await.unwrap();
    for n in 0..10 {
        queue.put_to(0, "t", n.to_string()).await.unwrap();
    }
    until("all are consumed", || seen.len() >= 10).await;
    assert_eq!(seen.values(), (0..10).map(|n| n.to_string()).collect::<Vec<_>>(), "in order, nothing skipped");
    let status = hqueue.admin().queue_status("q").await.unwrap();
    assert!(status.subscriptions[0].failed >= 1);
    subscriber.stop("the test is over").await;
}

/// Topics, partitions with their own start; stop and start again.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_wants_what_it_says() {
    let broker = Broker::start();
    let (_, queue) = connect(&broker, 3).await;
    let mut ids: Vec<MessageId> = Vec::new();
    for partition in 0..3 {
        for (topic, n) in [("red", 0), ("blue", 1), ("red", 2)] {
            let placed = queue.put_to(partition, topic, format!("{partition}{topic}{n}")).await.unwrap();
            ids.push(placed.id);
        }
    }
    let seen = Notebook::default();
    let noting = |seen: &Notebook| {
        let seen = seen.clone();
        move |message: &Message| -> Result<(), String> {
            seen.add(&message.value);
            Ok(())
        }
    };
    let wanted = Subscription::new("s")
        .topic("red")
        .partition_from(0, Position::Earliest)
        .partition_from(1, Position::Id(ids[5]))
        .from(Position::Latest)
        .partition(2);
    let mut subscriber = queue.create_subscriber(wanted, Listeners::one(noting(&seen)));
    subscriber.start().await.unwrap();
    queue.put_to(2, "red", "2red3").await.unwrap();
    queue.put_to(2, "blue", "2blue4").await.unwrap();
    until("what is wanted comes", || seen.len() >= 4).await;
    subscriber.stop("a pause").await;
    assert!(subscriber.address().is_none());
    queue.put_to(0, "red", "0red5").await.unwrap();
    subscriber.start().await.unwrap();
    until("it goes on", || seen.len() >= 5).await;
    let mut values = seen.values();
    values.sort();
    assert_eq!(values, ["0red0", "0red2", "0red5", "1red2", "2red3"]);
    subscriber.stop("the test is over").await;
}

/// Over a crash of the broker: clients connect anew, the subscriber registers again, nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn clients_and_subscribers_survive_the_broker() {
    let mut broker = Broker::start();
    let (_, queue) = connect(&broker, 2).await;
    let seen = Notebook::default();
    let note = seen.clone();
    let listener = move |message: &Message| -> Result<(), String> {
        note.add(&message.value);
        Ok(())
    };
    let mut subscriber = queue.create_subscriber(Subscription::new("s").from(Position::Earliest), Listeners::one(listener));
    subscriber.start().await.unwrap();
    queue.put("t", "before").await.unwrap();
    until("the first comes", || seen.len() == 1).await;
    for round in 0..2 {
        broker.kill();
        let error = queue.put("t", "nobody there").await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        broker.restart();
        let value = format!("after {round}");
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = queue.put("t", value.clone()).await {
            assert!(error.is_retryable() && Instant::now() < deadline, "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        until("the subscriber is served again", || seen.values().contains(&value)).await;
    }
    subscriber.stop("the test is over").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_wrong_words() {
    let broker = Broker::start();
    let (hqueue, queue) = connect(&broker, 1).await;
    assert_eq!(hqueue.queue("other").unwrap().put("t", "v").await.unwrap_err().code(), Some(ErrorCode::NotFound));
    assert!(matches!(hqueue.queue("a/b").unwrap_err(), hqueue::Error::Invalid(_)));
    let large = queue.put("t", vec![0; 4_194_305]).await.unwrap_err();
    assert_eq!(large.code(), Some(ErrorCode::TooLarge), "{large}");
    assert!(large.to_string().contains("4194304"), "{large}");
    assert!(!large.is_retryable());
    for error in [
        queue.put("", "v").await.unwrap_err(),
        queue.put_to(1, "t", "v").await.unwrap_err(),
        queue.put_to(-1, "t", "v").await.unwrap_err(),
    ] {
        assert!(!error.is_retryable() && !error.may_have_been_carried_out(), "{error}");
    }
    for url in ["", "hqueue://", "hqueue://host", "hqueue://host:99999", "http://127.0.0.1:1", "127.0.0.1:1"] {
        assert!(matches!(HQueue::connect(url).await.unwrap_err(), hqueue::Error::Invalid(_)), "{url}");
    }
    let nobody = format!("hqueue://127.0.0.1:{}", hqueue_tests::free_port());
    assert!(matches!(HQueue::connect(&nobody).await.unwrap_err(), hqueue::Error::Unreachable(_)));
    let listener = |_: &Message| -> Result<(), String> { Ok(()) };
    let mut bad = queue.create_subscriber(Subscription::new("a b"), Listeners::one(listener));
    assert!(bad.start().await.is_err());
    assert!(bad.address().is_none(), "what did not start does not listen");
}
