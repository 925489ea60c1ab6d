//! The kinds of values that Thrift knows, and their codes in both protocols.

use super::WireError;

/// What kind of value stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    /// A string or binary: the wire does not tell them apart.
    String,
    Struct,
    Map,
    Set,
    List,
    Uuid,
}

impl Kind {
    /// By the code of the binary protocol.
    pub const fn from_binary(code: u8) -> Result<Self, WireError> {
        Ok(match code {
            2 => Self::Bool,
            3 => Self::I8,
            4 => Self::Double,
            6 => Self::I16,
            8 => Self::I32,
            10 => Self::I64,
            11 => Self::String,
            12 => Self::Struct,
            13 => Self::Map,
            14 => Self::Set,
            15 => Self::List,
            16 => Self::Uuid,
            other => return Err(WireError::BadType(other)),
        })
    }

    /// By the code of the compact protocol. A true and a false field have codes of their own, and lists of both exist.
    pub const fn from_compact(code: u8) -> Result<Self, WireError> {
        Ok(match code {
            1 | 2 => Self::Bool,
            3 => Self::I8,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::String,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            other => return Err(WireError::BadType(other)),
        })
    }

    #[must_use]
    pub const fn binary_code(self) -> u8 {
        match self {
            Self::Bool => 2,
            Self::I8 => 3,
            Self::Double => 4,
            Self::I16 => 6,
            Self::I32 => 8,
            Self::I64 => 10,
            Self::String => 11,
            Self::Struct => 12,
            Self::Map => 13,
            Self::Set => 14,
            Self::List => 15,
            Self::Uuid => 16,
        }
    }

    /// The code in the compact protocol; of a bool the one that stands for elements.
    #[must_use]
    pub const fn compact_code(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::I8 => 3,
            Self::I16 => 4,
            Self::I32 => 5,
            Self::I64 => 6,
            Self::Double => 7,
            Self::String => 8,
            Self::List => 9,
            Self::Set => 10,
            Self::Map => 11,
            Self::Struct => 12,
            Self::Uuid => 13,
        }
    }
}

/// The head of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub id: i16,
    pub kind: Kind,
    /// The value of a bool that the compact protocol keeps in the head: nothing follows.
    pub inline: Option<bool>,
}
