//! Queues of real text, and what a plain program makes of it.

use std::collections::BTreeMap;

use hqueue_protocol::generated::TMessage;
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Id};

/// How often each word stands in a text.
pub(crate) type Counts = BTreeMap<String, u64>;

pub(crate) const PARTITIONS: i16 = 4;

/// A line of the text: where it went.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) partition: i16,
    pub(crate) id: Id,
    pub(crate) topic: String,
    pub(crate) text: String,
}

/// Puts files of the text into the queue `q`, a message a line, a file into one partition. Topics are `even` and `odd`, in turn.
pub(crate) fn fill(broker: &Broker, files: usize) -> Vec<Line> {
    broker.create("q", PARTITIONS.into());
    put(broker, files)
}

/// The same into the queue as it is.
pub(crate) fn put(broker: &Broker, files: usize) -> Vec<Line> {
    let mut gateway = broker.gateway();
    let mut lines = Vec::new();
    let texts = hqueue_tests::text::files_of_lines();
    for (n, file) in texts.iter().filter(|file| !file.is_empty()).take(files).enumerate() {
        let partition = i16::try_from(n).unwrap() % PARTITIONS;
        let topic = |n: usize| if n.is_multiple_of(2) { "even" } else { "odd" };
        let messages: Vec<TMessage> = file.iter().enumerate().map(|(n, text)| to_put(topic(n), text.as_str())).collect();
        let (_, ids) = put_for_ids(&mut gateway, "q", partition, messages).unwrap();
        let line =
            |(n, (text, id)): (usize, (&String, Id))| Line { partition, id, topic: topic(n).to_owned(), text: text.clone() };
        lines.extend(file.iter().zip(ids).enumerate().map(line));
    }
    lines
}

/// The plain program.
pub(crate) fn count<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Counts {
    let mut counts = Counts::new();
    for line in lines {
        // What Java's StringTokenizer takes for space.
        for word in line.text.split([' ', '\t', '\n', '\r', '\x0c']).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    counts
}
