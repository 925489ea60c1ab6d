//! The stored form of messages, which is their wire form: Thrift binary `TMessage` structs with id and partition filled in.
//!
//! ```text
//! offset  bytes                what
//!      0  0c 00 01             field 1, a struct: the id
//!      3  0a 00 01  8 bytes    its timestamp
//!     14  06 00 02  2 bytes    its sequence
//!     19  00                   end of the id
//!     20  06 00 02  2 bytes    field 2: the partition
//!     25  fields 3, 4, 5, and any above, as they came from the client
//!         00                   end of the message
//! ```
//!
//! A put is stepped over into this form once ([`PutBatch`]); a push is a call header and slices of it ([`StoredSlice`]).

mod batch;
mod call;
mod compact;
mod message;
mod put;
mod put_error;
mod slice;
mod topics;
mod unknown;

pub use batch::{Headers, PutBatch};
pub use call::{consume_call, fetch_result, scanner_get_result, scanner_list_result};
pub use compact::to_compact;
pub use message::{PREFIX_LEN, StoredMessage};
pub use put::{PutRequest, PutShape, queue_of_put, read_put};
pub use put_error::PutError;
pub use slice::StoredSlice;
pub use topics::{MAX_TOPICS, TopicTable};
pub use unknown::are_unknown_fields;
