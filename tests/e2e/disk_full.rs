//! A full disk: puts are refused with that reason, reading and pushing go on, nothing is deleted, and puts resume by themselves.

use std::collections::BTreeSet;
use std::{fs, io};

use hqueue_protocol::generated::{TErrorCode, THQueueAdminServiceSyncClient};
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::order::check_order;
use hqueue_tests::small_disk::SmallDisk;
use hqueue_tests::{Answer, Broker, Consumer, Id, PATIENCE, Setup, refusal, wait};

/// Puts until the disk is full; returns the ids that were acknowledged.
fn fill(broker: &Broker) -> Vec<Id> {
    let mut gateway = broker.gateway();
    let mut acknowledged = Vec::new();
    for n in 0..100_000 {
        match put_for_ids(&mut gateway, "q", 0, vec![to_put("t", vec![b'x'; 100_000])]) {
            Ok((_, ids)) => acknowledged.extend(ids),
            error => {
                let refused = refusal(error);
                println!("put {n}: {}", refused.message);
                assert_eq!(refused.code, TErrorCode::NO_SPACE, "{}", refused.message);
                assert!(refused.message.to_lowercase().contains("space"), "{}", refused.message);
                return acknowledged;
            }
        }
    }
    panic!("the disk is never full");
}

fn is_stored(broker: &Broker, ids: &[Id]) -> bool {
    let stored: BTreeSet<Id> = broker.scan("q", 0).into_iter().map(|m| m.id).collect();
    ids.iter().all(|id| stored.contains(id))
}

#[test]
fn a_full_disk() {
    let disk = match SmallDisk::mount(320) {
        Ok(disk) => disk,
        Err(why) => {
            println!("not tested here: {why}");
            return;
        }
    };
    // Another program's file, which goes away later.
    let ballast = disk.path().join("ballast");
    let mut broker = Broker::with(Setup { data: Some(disk.path().join("data")), ..Setup::default() });
    fs::write(&ballast, vec![1; 150 << 20]).unwrap();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Value(-2));
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "50ms"), ("retry-max", "100ms")]);
    let acknowledged = fill(&broker);
    assert!(acknowledged.len() > 100, "{} messages fit", acknowledged.len());
    assert!(is_stored(&broker, &acknowledged), "scans go on");
    consumer.answer_all();
    wait("pushing goes on", PATIENCE, || consumer.count() >= acknowledged.len());

    // Somebody else takes the last byte, too.
    let rest = disk.path().join("rest");
    let taken = io::copy(&mut io::repeat(1), &mut fs::File::create(&rest).unwrap());
    assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::StorageFull);
    broker.run(&["put", "q", "--topic", "t", &"x".repeat(100_000)]).refused(1, &["space"]);
    let spec = hqueue_tests::queue_spec("another", 1, 60);
    let refused = refusal(broker.admin().create_queue(spec.clone()));
    println!("create: {refused:?}");
    assert_eq!(refused.code, TErrorCode::NO_SPACE);

    broker.kill();
    broker.restart();
    assert!(is_stored(&broker, &acknowledged), "a start on the full disk deletes nothing");
    let refused = put_for_ids(&mut broker.gateway(), "q", 0, vec![to_put("t", vec![b'x'; 1_000_000])]);
    assert_eq!(refusal(refused).code, TErrorCode::NO_SPACE, "after the restart");

    fs::remove_file(&rest).unwrap();
    fs::remove_file(&ballast).unwrap();
    wait("queues can be made again", PATIENCE, || broker.admin().create_queue(spec.clone()).is_ok());
    let mut gateway = broker.gateway();
    wait("puts resume by themselves", PATIENCE, || put_for_ids(&mut gateway, "q", 0, vec![to_put("t", "space again")]).is_ok());
    for _ in 0..100 {
        put_for_ids(&mut gateway, "q", 0, vec![to_put("t", vec![b'x'; 100_000])]).unwrap();
    }
    wait("and are pushed", PATIENCE, || consumer.has("space again") && consumer.count() > acknowledged.len() + 100);
    broker.wait_for_no_lag("q", "s");
    check_order(&consumer.accepted());
    drop(gateway);
    broker.stop();
    broker.restart();
    assert!(is_stored(&broker, &acknowledged));
    // Before the disk that it lies on.
    drop(broker);
}
