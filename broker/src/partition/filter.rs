//! Which topics a reader wants.

use std::sync::Arc;

use hqueue_protocol::stored::{StoredMessage, TopicTable};

use crate::dead_letters::LetterIndex;

/// The topics that a reader wants; none named means all.
#[derive(Clone, Debug, Default)]
pub struct TopicFilter {
    topics: Arc<[Vec<u8>]>,
    /// Of a dead-letter queue: what is removed is not seen.
    letters: Option<Arc<LetterIndex>>,
}

impl PartialEq for TopicFilter {
    fn eq(&self, other: &Self) -> bool {
        self.topics == other.topics
    }
}

impl Eq for TopicFilter {}

/// How much of some messages a reader wants, as far as their topics tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    All,
    None,
    /// Each message has to be looked at.
    Some,
}

impl TopicFilter {
    #[must_use]
    pub fn new(mut topics: Vec<Vec<u8>>) -> Self {
        topics.sort_unstable();
        topics.dedup();
        Self { topics: topics.into(), letters: None }
    }

    /// The same for other topics.
    #[must_use]
    pub fn with_topics(&self, topics: Vec<Vec<u8>>) -> Self {
        Self { letters: self.letters.clone(), ..Self::new(topics) }
    }

    /// The same in a dead-letter queue.
    #[must_use]
    pub fn among_letters(self, letters: Option<Arc<LetterIndex>>) -> Self {
        Self { letters, ..self }
    }

    #[must_use]
    pub fn is_all(&self) -> bool {
        self.topics.is_empty() && self.letters.is_none()
    }

    #[must_use]
    pub fn topics(&self) -> &Arc<[Vec<u8>]> {
        &self.topics
    }

    #[must_use]
    pub fn wants(&self, message: &StoredMessage<'_>) -> bool {
        self.wants_topic(message.topic) && self.letters.as_ref().is_none_or(|letters| !letters.hides(message))
    }

    fn wants_topic(&self, topic: &[u8]) -> bool {
        self.topics.is_empty() || self.topics.binary_search_by(|t| t.as_slice().cmp(topic)).is_ok()
    }

    /// Looks at the topics noted of a block.
    #[must_use]
    pub fn of_table(&self, table: &TopicTable) -> Wanted {
        if self.is_all() {
            return Wanted::All;
        }
        let TopicTable::Few(noted) = table else { return Wanted::Some };
        match noted.iter().filter(|(topic, _)| self.wants_topic(topic)).count() {
            0 => Wanted::None,
            n if n == noted.len() && self.letters.is_none() => Wanted::All,
            _ => Wanted::Some,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_taken_whole_or_not_at_all_when_its_topics_say_so() {
        let mut table = TopicTable::default();
        table.add(b"a", 2);
        table.add(b"b", 1);
        let filter = |topics: &[&str]| TopicFilter::new(topics.iter().map(|t| t.as_bytes().to_vec()).collect());
        assert_eq!(filter(&[]).of_table(&table), Wanted::All);
        assert_eq!(filter(&["b", "a", "c"]).of_table(&table), Wanted::All);
        assert_eq!(filter(&["c"]).of_table(&table), Wanted::None);
        assert_eq!(filter(&["a"]).of_table(&table), Wanted::Some);
        assert_eq!(filter(&["a"]).of_table(&TopicTable::Many), Wanted::Some);
    }
}
