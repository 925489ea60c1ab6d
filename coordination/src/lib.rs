//! Where brokers and subscribers meet: a tree of small nodes with versions, ephemeral nodes and watches.
//!
//! [`Coordinator`] is the seam. [`embedded`] keeps the tree in a standalone broker. [`conformance`] says as tests what every
//! implementation must do. `zk-layout.md` at the root of the repository lists the nodes.

pub mod conformance;
mod coordinator;
pub mod embedded;
mod path;
mod subtree;

pub use coordinator::*;
pub use path::{MAX_PATH_BYTES, ROOT, check_path, child_of, name_of, parent_of, with_number};
pub use subtree::{create_all, delete_tree};
