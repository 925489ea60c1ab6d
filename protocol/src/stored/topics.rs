//! The topics of some messages with their counts, while they are few.

/// At most so many topics are noted.
pub const MAX_TOPICS: usize = 16;

/// Which topics some messages have, and how many have each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicTable {
    /// All of them, in order of first appearance.
    Few(Vec<(Box<[u8]>, u32)>),
    /// More than 16: not noted.
    Many,
}

impl Default for TopicTable {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl TopicTable {
    /// Notes `count` more messages of `topic`.
    pub fn add(&mut self, topic: &[u8], count: u32) {
        let Self::Few(known) = self else { return };
        // Runs of one topic are the rule, and the last one noted is the likeliest.
        if let Some((_, n)) = known.iter_mut().rev().find(|(t, _)| **t == *topic) {
            *n = n.saturating_add(count);
        } else if known.len() < MAX_TOPICS {
            known.push((topic.into(), count));
        } else {
            *self = Self::Many;
        }
    }

    /// Adds everything that `other` has noted.
    pub fn merge(&mut self, other: &Self) {
        match other {
            Self::Few(entries) => entries.iter().for_each(|(topic, count)| self.add(topic, *count)),
            Self::Many => *self = Self::Many,
        }
    }
}
