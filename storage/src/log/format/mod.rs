//! The bytes of the log: segment headers, blocks, control records. Numbers are big-endian.

pub(super) mod block;
pub(super) mod bytes;
pub(super) mod control;
pub(super) mod header;
pub(super) mod table;
