//! Frames of a connection: four bytes of length, then so many bytes.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

const LENGTH_BYTES: usize = 4;
/// No side sends more in one frame.
const MAX_FRAME: usize = 64 << 20;
const ROOM_BYTES: usize = 64 << 10;

/// Reads frames.
#[derive(Debug)]
pub struct Frames<R> {
    reader: R,
    buffer: BytesMut,
    /// Bytes at the front of the buffer that belong to the current frame.
    current: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: BytesMut::with_capacity(ROOM_BYTES), current: 0 }
    }

    /// Waits for the next frame. False: the peer has ended between two frames.
    pub async fn next(&mut self) -> io::Result<bool> {
        self.buffer.advance(std::mem::take(&mut self.current));
        loop {
            match self.size_at_front()? {
                Some(size) if self.buffer.len() >= size => {
                    self.current = size;
                    return Ok(true);
                }
                Some(size) => self.buffer.reserve(size - self.buffer.len()),
                None => self.buffer.reserve(ROOM_BYTES),
            }
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The current frame without its length.
    pub fn body(&self) -> &[u8] {
        self.buffer.get(LENGTH_BYTES..self.current).unwrap_or_default()
    }

    /// Is the next frame here already?
    pub fn has_next(&self) -> bool {
        let rest = self.buffer.get(self.current..).unwrap_or_default();
        rest.split_first_chunk().is_some_and(|(length, rest)| rest.len() >= u32::from_be_bytes(*length) as usize)
    }

    /// Waits until the peer ends or the connection breaks; keeps what comes before.
    pub async fn ended(&mut self) {
        while self.reader.read_buf(&mut self.buffer).await.is_ok_and(|read| read > 0) {}
    }

    fn size_at_front(&self) -> io::Result<Option<usize>> {
        let Some(length) = self.buffer.first_chunk() else { return Ok(None) };
        let size = u32::from_be_bytes(*length) as usize;
        if size > MAX_FRAME {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {size} bytes")));
        }
        Ok(Some(LENGTH_BYTES + size))
    }
}
