//! Where brokers and subscribers meet: a tree of small nodes with versions, ephemeral nodes and watches.
//!
//! [`Coordinator`] is the seam. [`embedded`] keeps the tree in a standalone broker, [`zookeeper`] in a ZooKeeper ensemble.
//! [`conformance`] says as tests what every implementation must do. `zk-layout.md` at the root of the repository lists the nodes.

mod claim;
pub mod conformance;
mod coordinator;
pub mod embedded;
mod leftover;
mod path;
mod subtree;
mod watched;
pub mod zookeeper;

pub use claim::{Claim, claim};
pub use coordinator::*;
pub use leftover::{Leftover, held_by, remove_leftover};
pub use path::{MAX_PATH_BYTES, ROOT, check_path, child_of, name_of, parent_of, with_number};
pub use subtree::{create_all, delete_tree};
pub use watched::{Ended, Watched};
