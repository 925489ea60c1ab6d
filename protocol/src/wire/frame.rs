//! The four bytes of length in front of each message of the framed transport.

use super::WireError;

/// Bytes of the length.
pub const LENGTH_BYTES: usize = 4;

/// The length of the frame whose first bytes these are; `None` while fewer than four are there. 0, negative ones and those above
/// `limit` are refused: call it before anything is allocated for the frame.
pub fn read_length(bytes: &[u8], limit: usize) -> Result<Option<usize>, WireError> {
    let Some(length) = bytes.first_chunk::<LENGTH_BYTES>().map(|b| i32::from_be_bytes(*b)) else { return Ok(None) };
    let size = usize::try_from(length).map_err(|_| WireError::NegativeSize(length.into()))?;
    match size {
        0 => Err(WireError::EmptyFrame),
        _ if size > limit => Err(WireError::TooLarge { size, limit }),
        _ => Ok(Some(size)),
    }
}

/// The length in front of a message of `size` bytes.
#[must_use]
pub fn length_of(size: usize) -> [u8; LENGTH_BYTES] {
    u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes()
}
