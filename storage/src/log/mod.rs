//! Messages in segment files: the store that a broker has by default.

mod buffers;
mod commit;
mod count;
mod counters;
mod directory;
mod files;
mod folder;
mod format;
mod group;
mod index;
mod indexing;
mod intake;
mod locate;
mod options;
mod partition;
mod pool;
mod queue;
mod reader;
mod recovery;
mod replay;
mod retention;
mod retire;
mod scan;
mod segment;
mod segments;
mod shared;
mod source;
mod store;
mod sweep;
mod sync;
mod walk;
mod windows;
mod write;
mod writer;

pub use options::{BadOption, StoreOptions};
pub use store::SegmentStore;

#[cfg(test)]
mod tests;
