//! Fetches and commits at any broker: the owner answers, and a wait is woken there.

use std::time::{Duration, Instant};

use hqueue_protocol::generated::{
    TErrorCode, TFetch, TFetched, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessageID, TSubscriberSpec,
};
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Cluster, Dialect, Id, Message, PATIENCE, refusal, wait};

const PARTITIONS: i16 = 4;

fn wanted(position: Option<&str>, subscriber: Option<&str>, wait_ms: i64) -> TFetch {
    TFetch::new(position.map(str::to_owned), subscriber.map(|s| s.as_bytes().to_vec()), 100, wait_ms, None)
}

fn texts(fetched: TFetched) -> Vec<String> {
    fetched.messages.unwrap().into_iter().map(|m| Message::from(m).text().to_owned()).collect()
}

/// Also of a queue that was made a moment ago, whose partitions another broker may not hold yet.
fn add(broker: &Broker, name: &str) {
    let spec =
        TSubscriberSpec { name: Some(name.into()), start_position: Some("earliest".to_owned()), ..TSubscriberSpec::default() };
    wait("the subscriber is added", PATIENCE, || broker.admin().add_subscriber("q".into(), spec.clone()).is_ok());
}

fn requests(broker: &Broker) -> f64 {
    broker.metrics().sum("hqueue_requests_total", &[])
}

fn connections(broker: &Broker) -> f64 {
    broker.metrics().sum("hqueue_connections", &[])
}

#[test]
fn the_owner_answers_whoever_is_asked() {
    let mut cluster = Cluster::start(2);
    cluster.brokers[0].create("q", PARTITIONS.into());
    add(&cluster.brokers[0], "s");
    for partition in 0..PARTITIONS {
        let ids = cluster.brokers[0].put("q", partition, &["a", "b", "c", "d"]);
        for (n, broker) in cluster.brokers.iter().enumerate() {
            for dialect in Dialect::ALL {
                let mut gateway = broker.try_gateway(dialect).unwrap();
                let all = gateway.fetch("q".into(), partition, wanted(Some("earliest"), None, 0)).unwrap();
                assert_eq!(texts(all), ["a", "b", "c", "d"], "{dialect:?}");
                let rest = gateway.fetch("q".into(), partition, wanted(None, Some("s"), 0)).unwrap();
                assert_eq!(texts(rest), ["a", "b", "c", "d"][n..], "{dialect:?}");
                let refused = refusal(gateway.fetch("q".into(), partition, wanted(None, Some("nobody"), 0)));
                assert_eq!(refused.code, TErrorCode::NOT_FOUND);
            }
            broker.gateway().commit("q".into(), "s".into(), partition, ids[n + 1].into()).unwrap();
        }
    }
    // One that was made a moment ago at another broker.
    for n in 0..5 {
        let name = format!("new{n}");
        add(&cluster.brokers[n % 2], &name);
        for partition in 0..PARTITIONS {
            let found = cluster.brokers[1].gateway().fetch("q".into(), partition, wanted(None, Some(name.as_str()), 0)).unwrap();
            assert_eq!(texts(found), ["a", "b", "c", "d"]);
        }
    }
    for broker in &mut cluster.brokers {
        broker.kill();
        broker.restart();
    }
    cluster.wait_until_complete();
    let mut gateway = cluster.brokers[0].gateway();
    for partition in 0..PARTITIONS {
        let mut found = None;
        // Who was killed holds its partitions again once its old session is over.
        wait("the commits are there", PATIENCE, || {
            found = gateway.fetch("q".into(), partition, wanted(None, Some("s"), 0)).ok();
            found.is_some()
        });
        assert_eq!(texts(found.unwrap()), ["c", "d"]);
    }
}

#[test]
fn a_wait_at_another_broker_is_woken_and_ends_with_its_client() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", PARTITIONS.into());
    let (owner, other) = (&cluster.brokers[0], &cluster.brokers[1]);
    let partition = cluster.partition_of("q", 0);
    for dialect in Dialect::ALL {
        let mut gateway = other.try_gateway(dialect).unwrap();
        let begun = requests(owner);
        // The end of the wait is the message, wherever `latest` was.
        let fetcher = std::thread::spawn(move || {
            let fetched = gateway.fetch("q".into(), partition, wanted(Some("latest"), None, 30_000)).unwrap();
            (Instant::now(), texts(fetched))
        });
        // The first look, and the wait.
        wait("it waits at the owner", PATIENCE, || requests(owner) >= begun + 2.0);
        let put = Instant::now();
        put_for_ids(&mut other.gateway(), "q", partition, vec![to_put("t", "now")]).unwrap();
        let (at, found) = fetcher.join().unwrap();
        assert_eq!(found, ["now"]);
        println!("{dialect:?}: {:?} from the put to the fetch", at - put);
        assert!(at - put < Duration::from_secs(2));
    }
    let (open, open_there, begun) = (connections(owner), connections(other), requests(owner));
    let follower = hqueue_tests::Follower::start(other.words(&["poll", "q", "--name", "p", "--wait", "30s"]));
    wait("it waits at the owner", PATIENCE, || connections(owner) > open && requests(owner) >= begun + 2.0);
    follower.kill();
    wait("nothing is left", Duration::from_secs(5), || connections(owner) <= open && connections(other) <= open_there);
}

#[test]
fn partitions_of_a_broker_that_is_away_are_offline() {
    let mut cluster = Cluster::start(2);
    cluster.brokers[0].create("q", PARTITIONS.into());
    add(&cluster.brokers[0], "s");
    let (gone, there) = (cluster.partition_of("q", 1), cluster.partition_of("q", 0));
    cluster.brokers[0].put("q", there, &["a"]);
    cluster.brokers[1].kill();
    let mut gateway = cluster.brokers[0].gateway();
    assert_eq!(refusal(gateway.fetch("q".into(), gone, wanted(None, Some("s"), 1000))).code, TErrorCode::OFFLINE);
    let id = TMessageID::from(Id { timestamp: 5, sequence: 0 });
    assert_eq!(refusal(gateway.commit("q".into(), "s".into(), gone, id)).code, TErrorCode::OFFLINE);
    // What can be read is printed and committed; that the rest cannot be is a failure.
    let poll = || cluster.brokers[0].run(&["poll", "q", "--name", "s", "--format", "json"]);
    let done = poll();
    assert_eq!(done.code, Some(1), "{done}");
    assert!(String::from_utf8_lossy(&done.out).contains("\"value\":\"a\""), "{done}");
    assert!(done.err.contains(&format!("partition {gone}: offline")) || done.err.contains("partitions "), "{done}");
    let again = poll();
    assert!(again.code == Some(1) && again.out.is_empty() && again.err.contains("offline"), "{again}");
    wait("it is known to be away", PATIENCE, || poll().err.contains(&format!("its broker {} is away", cluster.name(1))));
    let locations = cluster.brokers[0].run(&["locations", "q"]);
    let offline = format!("{gone} offline, with broker {}", cluster.name(1));
    assert!(locations.text().lines().any(|line| line == offline), "{locations}");
    assert!(locations.text().contains(&format!("{there} {}", cluster.brokers[0].address())), "{locations}");
    let locations = cluster.brokers[0].run(&["locations", "q", "--format", "json"]).json();
    assert_eq!(locations["locations"][usize::try_from(gone).unwrap()], "");
    let offline = locations["offline"].as_array().unwrap();
    assert!(offline.iter().any(|o| o["partition"] == gone && o["broker"] == cluster.name(1)), "{locations}");
    let status = cluster.brokers[0].run(&["status", "q"]);
    assert!(status.text().contains(&format!("offline, with broker {}", cluster.name(1))), "{status}");
}
