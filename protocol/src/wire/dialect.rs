//! The four ways in which Thrift peers speak.

/// How values are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Binary,
    Compact,
}

/// How messages are told apart on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A message ends where its struct ends.
    Buffered,
    /// Four bytes of length stand before each message.
    Framed,
}

/// What a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dialect {
    pub transport: Transport,
    pub protocol: Protocol,
}
