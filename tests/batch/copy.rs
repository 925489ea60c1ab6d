//! From one queue into another.

use std::collections::BTreeMap;

use hqueue_protocol::generated::THQueueServiceSyncClient;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Message};

use crate::program::Program;
use crate::queues::{PARTITIONS, fill};

pub(crate) fn all(broker: &Broker, queue: &str) -> Vec<Message> {
    (0..PARTITIONS).flat_map(|partition| broker.scan(queue, partition)).collect()
}

/// Partition, topic, value and headers; ids apart.
pub(crate) fn content(message: &Message) -> String {
    let message = Message { id: hqueue_tests::Id { timestamp: 0, sequence: 0 }, ..message.clone() };
    format!("{message:?}")
}

/// With partitions kept, everything but the ids is the same, in the same order; without, the messages are the same.
#[test]
fn a_copy_is_equal() {
    let broker = Broker::start();
    fill(&broker, 12);
    let headers = BTreeMap::from([("name".to_owned(), vec![0, 255])]);
    let odd = hqueue_protocol::generated::TMessage { headers: Some(headers), ..to_put(vec![255, 0], vec![0, 200, 10]) };
    broker.gateway().put_message_with_pid("q".into(), 1, odd).unwrap();
    let from = all(&broker, "q");
    for (to, partition) in [("same", "same"), ("any", "random")] {
        broker.create(to, PARTITIONS.into());
        let settings = [format!("hqueue.output.partition={partition}"), "hqueue.output.batch.messages=77".to_owned()];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let done = Program::job(&broker.address(), &settings, &["copy", "q", to]).end().succeeded();
        assert_eq!(done.counter("MESSAGES_PUT"), from.len() as u64);
        assert_eq!(done.counter("MESSAGES_PUT_AGAIN"), 0);
    }
    let same: Vec<String> = all(&broker, "same").iter().map(content).collect();
    assert!(same == from.iter().map(content).collect::<Vec<_>>(), "partitions and order are kept");
    let values = |messages: &[Message]| {
        let mut values: Vec<(Vec<u8>, Vec<u8>)> = messages.iter().map(|m| (m.topic.clone(), m.value.clone())).collect();
        values.sort();
        values
    };
    assert!(values(&all(&broker, "any")) == values(&from), "all of them are there, once");
}
