//! What the two protocols have in common: the same values, other bytes.

use super::WireError;
use super::kind::{Field, Kind};

/// Reads the heads of values, so that code can step over them without knowing the protocol.
///
/// Every function begins at `*at`, moves it behind what it has read, and leaves it undefined with an error. Of these,
/// [`WireError::Truncated`] says that more bytes may help.
pub trait Encoding {
    /// The least bytes of a `TMessage` with a topic and a value.
    const MIN_MESSAGE_BYTES: usize;

    /// The head of the next field; `None` at the end of the struct. `last` is the id of the field before it, 0 in front.
    fn field(bytes: &[u8], at: &mut usize, last: i16) -> Result<Option<Field>, WireError>;

    /// The head of a list or set: kind and number of the elements. An empty one may leave the kind open; it is then said to be bytes.
    fn list(bytes: &[u8], at: &mut usize) -> Result<(Kind, u32), WireError>;

    /// The head of a map: kinds of keys and values, and number of the entries. An empty one as above.
    fn map(bytes: &[u8], at: &mut usize) -> Result<(Kind, Kind, u32), WireError>;

    /// The size of a string, in front of its bytes.
    fn size(bytes: &[u8], at: &mut usize) -> Result<usize, WireError>;

    /// A number of 16, 32 or 64 bits.
    fn number(bytes: &[u8], at: &mut usize, kind: Kind) -> Result<i64, WireError>;

    /// A double, as its bits.
    fn double(bytes: &[u8], at: &mut usize) -> Result<u64, WireError>;

    /// A bool that is an element, or a field without its value in the head.
    fn bool(bytes: &[u8], at: &mut usize) -> Result<bool, WireError>;

    /// How wide every value of this kind is; `None` if that differs or if the value is no scalar.
    fn width(kind: Kind) -> Option<usize>;

    fn i16(bytes: &[u8], at: &mut usize) -> Result<i16, WireError> {
        // `number` checks that it is one.
        Self::number(bytes, at, Kind::I16).and_then(|n| i16::try_from(n).map_err(|_| WireError::LongNumber))
    }

    /// The bytes of a string.
    fn string<'a>(bytes: &'a [u8], at: &mut usize) -> Result<&'a [u8], WireError> {
        let size = Self::size(bytes, at)?;
        let found = bytes.get(*at..).and_then(|rest| rest.get(..size)).ok_or(WireError::Truncated)?;
        *at += size;
        Ok(found)
    }
}
