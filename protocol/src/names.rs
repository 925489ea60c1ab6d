//! Names of queues and subscribers, checked once.
//!
//! They become paths in the coordination tree and folders on disks, so there is one rule for all: 1 to 128 of `A-Z a-z 0-9 _ . -`,
//! the first of them no `.` and no `-`. The name of a queue leaves room for `.dlq`, which belongs to dead-letter queues; a subscriber
//! cannot be called as what stands beside subscribers in the tree, the `owner` of a partition.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Bytes of the longest name.
const MAX_NAME_BYTES: usize = 128;
/// What the name of a dead-letter queue ends with.
const DEAD_LETTER_SUFFIX: &str = ".dlq";
/// Bytes of the longest name of a queue that has a dead-letter queue.
const MAX_QUEUE_NAME_BYTES: usize = MAX_NAME_BYTES - DEAD_LETTER_SUFFIX.len();

/// The name of a queue, or of the dead-letter queue of one. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

/// The name of a subscriber. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberName(Arc<str>);

/// The name breaks the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {owner} name {shown} is not allowed: {reason}")]
pub struct BadName {
    owner: &'static str,
    /// Escaped, and only its beginning if it is long.
    shown: String,
    reason: NameRule,
}

/// What a name breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NameRule {
    #[error("it is empty, a name has 1 to {limit} characters")]
    Empty { limit: usize },
    #[error("it has {size} bytes, a name has 1 to {limit} characters")]
    Long { size: usize, limit: usize },
    #[error("{found:?} at character {place} is none of A-Z a-z 0-9 _ . -, which a name is made of")]
    Character { found: char, place: usize },
    #[error("a name begins with one of A-Z a-z 0-9 _")]
    First,
    #[error("it is not UTF-8, a name is made of A-Z a-z 0-9 _ . -")]
    NotUtf8,
    #[error("a name that ends in .dlq belongs to the dead-letter queue of the queue before it")]
    DeadLetter,
    #[error("the name owner stands for the owner of a partition")]
    Owner,
}

fn check(name: &str, limit: usize) -> Result<(), NameRule> {
    if name.is_empty() {
        return Err(NameRule::Empty { limit });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if let Some((at, found)) = name.chars().enumerate().find(|(_, c)| !allowed(*c)) {
        return Err(NameRule::Character { found, place: at + 1 });
    }
    if name.starts_with(['.', '-']) {
        return Err(NameRule::First);
    }
    if name.len() > limit {
        return Err(NameRule::Long { size: name.len(), limit });
    }
    Ok(())
}

fn bad(owner: &'static str, name: &str, reason: NameRule) -> BadName {
    const SHOWN: usize = 64;
    let begin: String = name.chars().take(SHOWN).collect();
    let dots = if begin.len() < name.len() { "…" } else { "" };
    BadName { owner, shown: format!("{begin:?}{dots}"), reason }
}

impl QueueName {
    /// The name of a queue, or of a dead-letter queue: wherever one that exists is named.
    pub fn parse(name: &str) -> Result<Self, BadName> {
        let queue = name.strip_suffix(DEAD_LETTER_SUFFIX).unwrap_or(name);
        Self::check_queue(queue).map_err(|reason| bad("queue", name, reason))?;
        Ok(Self(name.into()))
    }

    /// The name of a queue to be made, and thus of no dead-letter queue: those come by themselves.
    pub fn parse_new(name: &str) -> Result<Self, BadName> {
        Self::check_queue(name).map_err(|reason| bad("queue", name, reason))?;
        Ok(Self(name.into()))
    }

    fn check_queue(name: &str) -> Result<(), NameRule> {
        check(name, MAX_QUEUE_NAME_BYTES)?;
        if name.ends_with(DEAD_LETTER_SUFFIX) { Err(NameRule::DeadLetter) } else { Ok(()) }
    }

    /// As [`parse`](Self::parse), of a name as it comes over the wire.
    pub fn from_bytes(name: &[u8]) -> Result<Self, BadName> {
        let text = std::str::from_utf8(name).map_err(|_| bad("queue", &String::from_utf8_lossy(name), NameRule::NotUtf8))?;
        Self::parse(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn is_dead_letter(&self) -> bool {
        self.0.ends_with(DEAD_LETTER_SUFFIX)
    }

    /// The dead-letter queue of this queue; a dead-letter queue has none.
    #[must_use]
    pub fn dead_letter(&self) -> Option<Self> {
        (!self.is_dead_letter()).then(|| Self(format!("{}{DEAD_LETTER_SUFFIX}", self.0).into()))
    }

    /// The queue whose dead letters are here.
    #[must_use]
    pub fn dead_letter_of(&self) -> Option<Self> {
        self.0.strip_suffix(DEAD_LETTER_SUFFIX).map(|queue| Self(queue.into()))
    }
}

impl SubscriberName {
    /// Checks a name.
    pub fn parse(name: &str) -> Result<Self, BadName> {
        check(name, MAX_NAME_BYTES).map_err(|reason| bad("subscriber", name, reason))?;
        if name == "owner" {
            return Err(bad("subscriber", name, NameRule::Owner));
        }
        Ok(Self(name.into()))
    }

    /// As [`parse`](Self::parse), of a name as it comes over the wire.
    pub fn from_bytes(name: &[u8]) -> Result<Self, BadName> {
        let text = std::str::from_utf8(name).map_err(|_| bad("subscriber", &String::from_utf8_lossy(name), NameRule::NotUtf8))?;
        Self::parse(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text_of_name {
    ($($name:ident)*) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            fn from_str(name: &str) -> Result<Self, BadName> {
                Self::parse(name)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )* };
}

text_of_name! { QueueName SubscriberName }

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        let error = QueueName::parse(name).unwrap_err();
        assert_eq!(QueueName::parse_new(name), Err(error.clone()));
        SubscriberName::parse(name).unwrap_err();
        error.to_string()
    }

    #[test]
    fn names_are_made_of_few_characters() {
        for good in ["q1", "_", "0", "a.b-c_D", "zookeeper", "x.", &"q".repeat(124)] {
            assert_eq!(QueueName::parse(good).unwrap().as_str(), good);
            assert_eq!(QueueName::parse_new(good).unwrap().to_string(), good);
            assert_eq!(SubscriberName::parse(good).unwrap().as_ref(), good);
        }
        let bads = [
            "", "a/b", "..", ".", "a//b", "/x", "x/", "a b", "a\nb", "a\0b", "%2f", "a\u{7f}", "队列", "🦀", "é", "e\u{301}",
            "-a", ".a",
        ];
        for bad in bads {
            assert!(refusal(bad).contains("name"), "{bad:?}");
        }
        assert_eq!(
            refusal("a/b"),
            "the queue name \"a/b\" is not allowed: '/' at character 2 is none of A-Z a-z 0-9 _ . -, which a name is made of"
        );
        assert_eq!(refusal(".."), "the queue name \"..\" is not allowed: a name begins with one of A-Z a-z 0-9 _");
    }

    #[test]
    fn long_names_are_refused_and_not_repeated() {
        assert!(QueueName::parse(&"q".repeat(125)).is_err());
        assert!(SubscriberName::parse(&"s".repeat(128)).is_ok());
        let text = SubscriberName::parse(&"s".repeat(5000)).unwrap_err().to_string();
        assert!(text.contains("5000") && text.contains("128") && text.len() < 200, "{text}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert!(QueueName::from_bytes(b"q\xff").unwrap_err().to_string().contains("UTF-8"));
        assert!(SubscriberName::from_bytes(b"\xc3\x28").is_err());
        assert_eq!(QueueName::from_bytes(b"q1"), QueueName::parse("q1"));
    }

    #[test]
    fn dead_letter_queues_are_named_and_not_made() {
        let queue = QueueName::parse_new(&"q".repeat(124)).unwrap();
        let letters = queue.dead_letter().unwrap();
        assert_eq!(letters.as_str().len(), 128);
        assert_eq!(QueueName::parse(letters.as_str()), Ok(letters.clone()));
        assert_eq!(letters.dead_letter_of(), Some(queue));
        assert_eq!(letters.dead_letter(), None);
        assert!(QueueName::parse_new("q.dlq").unwrap_err().to_string().contains("dead-letter"));
        assert!(QueueName::parse("q.dlq.dlq").is_err());
        assert!(QueueName::parse(".dlq").is_err());
    }

    #[test]
    fn a_subscriber_is_no_owner() {
        assert!(SubscriberName::parse("owner").unwrap_err().to_string().contains("owner"));
        assert!(SubscriberName::parse("owner2").is_ok());
        assert!(QueueName::parse("owner").is_ok());
    }
}
