//! Words of a queue of real text.

use hqueue_tests::Broker;

use crate::program::word_count;
use crate::queues::{PARTITIONS, count, fill};

/// All of the project's text: the counts are those of a plain program, a task reads a partition, and the job says what it read.
#[test]
fn the_counts_are_those_of_a_plain_program() {
    let broker = Broker::start();
    let lines = fill(&broker, usize::MAX);
    let done = word_count(&broker, "q", &[]).succeeded();
    assert!(done.counts() == count(&lines), "{:?}", done.lines);
    assert_eq!(done.lines_of("split").len(), usize::try_from(PARTITIONS).unwrap());
    let bytes: usize = lines.iter().map(|line| line.text.len()).sum();
    assert_eq!(done.counter("MESSAGES_READ"), lines.len() as u64);
    assert_eq!(done.counter("BYTES_READ"), bytes as u64);
    for none in ["EXPIRED_MESSAGES", "DAMAGED_MESSAGES", "REOPENED_SCANNERS"] {
        assert_eq!(done.counter(none), 0, "{none}");
    }
    println!("{} messages, {bytes} bytes, {} different words", lines.len(), done.counts().len());
}
