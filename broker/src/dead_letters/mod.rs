//! Dead letters: messages that a subscriber could not consume, with their story, in a queue of their own.
//!
//! The letters of queue `q` stand in queue `q.dlq`: one partition, made with the first letter, as long-lived as the messages of `q`, gone with
//! it. It is scanned and subscribed to as any queue. A letter is the message under the topic of its subscriber's name, with headers that
//! tell where it was and why it is here ([`story`]). Removing a letter writes a message that says so ([`index`]): readers never see
//! either.

mod find;
mod index;
mod keep;
mod redrive;
mod story;

pub use index::LetterIndex;
pub use keep::Letters;
pub use story::{dead_letter_queue, is_dead_letter_queue};
