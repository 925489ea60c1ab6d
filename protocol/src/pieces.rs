//! Bytes on their way to a socket, in pieces that are written together and never copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

/// Pieces handed to one write.
const PIECES_A_WRITE: usize = 64;

/// What is still to be written, in order.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    queue: VecDeque<Bytes>,
    len: usize,
}

impl Pieces {
    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.queue.push_back(piece);
        }
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Writes once, as much as the socket takes; says how many bytes that were.
    pub(crate) fn poll_write(&mut self, socket: Pin<&mut impl AsyncWrite>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); PIECES_A_WRITE];
        let mut used = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.queue) {
            *slice = IoSlice::new(piece);
            used += 1;
        }
        let written = ready!(socket.poll_write_vectored(cx, slices.get(..used).unwrap_or(&[])))?;
        if written == 0 && !self.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    fn advance(&mut self, mut written: usize) {
        self.len = self.len.saturating_sub(written);
        while let Some(front) = self.queue.front_mut() {
            if written < front.len() {
                front.advance(written);
                return;
            }
            written -= front.len();
            self.queue.pop_front();
        }
    }
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        let mut out = Self::default();
        pieces.into_iter().for_each(|piece| out.push(piece));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_may_end_inside_any_piece() {
        for written in 0..=9 {
            let mut pieces = Pieces::default();
            for piece in ["abc", "", "d", "efghi"] {
                pieces.push(Bytes::from_static(piece.as_bytes()));
            }
            assert_eq!(pieces.len(), 9);
            pieces.advance(written);
            assert_eq!(pieces.len(), 9 - written);
            let left: Vec<u8> = pieces.queue.iter().flatten().copied().collect();
            assert_eq!(left, &b"abcdefghi"[written..]);
        }
    }
}
