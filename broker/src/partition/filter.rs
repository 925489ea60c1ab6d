//! Which topics a reader wants.

use hqueue_protocol::stored::TopicTable;
use std::sync::Arc;

/// The topics that a reader wants; none named means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicFilter {
    topics: Arc<[Vec<u8>]>,
}

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
        Self { topics: topics.into() }
    }

    #[must_use]
    pub fn is_all(&self) -> bool {
        self.topics.is_empty()
    }

    #[must_use]
    pub fn topics(&self) -> &Arc<[Vec<u8>]> {
        &self.topics
    }

    #[must_use]
    pub fn wants(&self, topic: &[u8]) -> bool {
        self.is_all() || self.topics.binary_search_by(|t| t.as_slice().cmp(topic)).is_ok()
    }

    /// Looks at the topics noted of a block.
    #[must_use]
    pub fn of_table(&self, table: &TopicTable) -> Wanted {
        if self.is_all() {
            return Wanted::All;
        }
        let TopicTable::Few(noted) = table else { return Wanted::Some };
        match noted.iter().filter(|(topic, _)| self.wants(topic)).count() {
            0 => Wanted::None,
            n if n == noted.len() => Wanted::All,
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
