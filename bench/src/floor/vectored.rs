//! Writing many pieces with few system calls.

use std::io::{self, IoSlice, Write};

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Pieces of one system call, Linux's limit.
const MAX_PIECES: usize = 1024;

pub(super) fn write_all(out: &mut impl Write, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    for mut some in pieces.chunks_mut(MAX_PIECES) {
        while !some.is_empty() {
            let written = out.write_vectored(some)?;
            advance(&mut some, written)?;
        }
    }
    Ok(())
}

pub(super) async fn send_all(out: &mut (impl AsyncWrite + Unpin), pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    for mut some in pieces.chunks_mut(MAX_PIECES) {
        while !some.is_empty() {
            let written = out.write_vectored(some).await?;
            advance(&mut some, written)?;
        }
    }
    Ok(())
}

fn advance(pieces: &mut &mut [IoSlice<'_>], written: usize) -> io::Result<()> {
    if written == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    IoSlice::advance_slices(pieces, written);
    Ok(())
}
