//! What the broker does with one partition: reading it from a position on, and telling those that wait for its commits.

mod filter;
mod scanner;
#[cfg(test)]
mod scanner_tests;
mod waiters;

pub use filter::TopicFilter;
pub use scanner::{Fill, MessageScanner, MissingCounts};
pub use waiters::CommitWaiters;
