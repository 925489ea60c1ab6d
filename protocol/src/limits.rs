//! The limits of the contract, in one place. Refusals name the limit and the size.

/// A larger request is refused. Bytes of the message, without the length of its frame.
pub const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;

/// A call of a subscriber stays under this: the default limit of most Thrift libraries. Bytes.
pub const CALL_LIMIT_BYTES: usize = 16_384_000;

/// What a message may grow by on its way to the dead-letter queue: the headers that tell why. Bytes.
pub const HEADER_ROOM_BYTES: usize = 8 * 1024;

/// More than a `consumeMessages` call has around its messages in any dialect. Bytes.
pub const CALL_ENVELOPE_BYTES: usize = 64;

/// The largest message in stored form, headers and all: alone in a call, and with the headers of a dead letter, it stays under
/// [`CALL_LIMIT_BYTES`]. Bytes.
pub const MAX_STORED_MESSAGE_BYTES: usize = CALL_LIMIT_BYTES - HEADER_ROOM_BYTES - CALL_ENVELOPE_BYTES;

/// The messages of one put in stored form. A put in the binary protocol of the largest size reaches this only with messages of a few
/// bytes; the compact protocol can say more in fewer bytes. Bytes.
pub const MAX_STORED_PUT_BYTES: usize = 2 * MAX_REQUEST_BYTES;

/// The largest value unless the broker is told otherwise. Bytes.
pub const DEFAULT_MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// What `max_message_bytes` can be set to at most: leaves 1 KiB for topic, id and partition. Bytes.
pub const MAX_MESSAGE_BYTES_CEILING: usize = MAX_STORED_MESSAGE_BYTES - 1024;

/// A topic has 1 to so many bytes.
pub const MAX_TOPIC_BYTES: usize = 255;

/// A queue has 1 to so many partitions.
pub const MAX_PARTITIONS: i16 = i16::MAX;
