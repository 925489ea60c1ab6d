//! Ids rise whatever happens between two puts. (Steps of the clock are tested beside the code that takes them, with a clock of its own.)

use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::order::check_rising;
use hqueue_tests::{Broker, Id};

#[test]
fn ids_go_on_above_those_before_a_restart() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let mut last = Id { timestamp: 0, sequence: 0 };
    for round in 0..4 {
        // So many in so short a time that ids run ahead of the clock.
        for _ in 0..5 {
            let messages = (0..20_000).map(|_| to_put("t", "")).collect();
            let (_, ids) = put_for_ids(&mut broker.gateway(), "q", 0, messages).unwrap();
            assert!(ids[0] > last, "round {round}: {} is not above {last}", ids[0]);
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(ids.iter().all(|id| id.sequence >= 0));
            last = *ids.last().unwrap();
        }
        match round % 2 {
            0 => broker.kill(),
            _ => drop(broker.stop()),
        }
        broker.restart();
    }
    let stored = broker.scan("q", 0);
    assert_eq!(stored.len(), 400_000);
    check_rising(&stored);
}

/// Ids rise over emptying and a restart behind it, where nothing of the old ones is left to see.
#[test]
fn ids_go_on_above_those_that_are_gone() {
    use hqueue_protocol::generated::THQueueAdminServiceSyncClient;
    let mut broker = Broker::start();
    broker.create("q", 1);
    let messages = (0..40_000).map(|_| to_put("t", "")).collect();
    let (_, ids) = put_for_ids(&mut broker.gateway(), "q", 0, messages).unwrap();
    broker.admin().truncate_queue("q".into()).unwrap();
    broker.kill();
    broker.restart();
    assert!(broker.put("q", 0, &["next"])[0] > ids[39_999]);
}
