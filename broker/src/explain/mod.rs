//! What became of one message: found in the store, asked of each subscription, decided, and said.
//!
//! ```text
//! lookup   is it there, was it?          collect  asks everybody for the facts, at the owner of the partition
//! facts    what is known, for one subscription   verdict  what follows: a function of the facts alone   words  the same for people
//! ```

mod collect;
mod facts;
mod lookup;
mod verdict;
#[cfg(test)]
mod verdict_tests;
mod words;

#[cfg(test)]
pub use collect::state_of;
