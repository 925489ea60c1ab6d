//! Lines of a file or of standard input, as they come.

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Read at once.
const CHUNK: usize = 64 * 1024;
/// Batches of lines that wait to be taken.
const WAITING: usize = 16;

/// Cuts what is read into lines. A line ends with `\n`, which does not belong to it (a carriage return before it does); what stands
/// behind the last one is a line too, unless it is empty.
struct Lines {
    rest: BytesMut,
    /// Searched already, without a line's end.
    searched: usize,
    max_line: usize,
}

impl Lines {
    fn new(max_line: usize) -> Self {
        Self { rest: BytesMut::new(), searched: 0, max_line }
    }

    /// Takes the lines that are complete. A line that is too long ends it.
    fn take(&mut self) -> io::Result<Vec<Bytes>> {
        let mut lines = Vec::new();
        while let Some(found) = self.rest.get(self.searched..).and_then(|new| new.iter().position(|b| *b == b'\n')) {
            let mut line = self.rest.split_to(self.searched + found + 1);
            line.truncate(line.len() - 1);
            self.searched = 0;
            lines.push(line.freeze());
        }
        self.searched = self.rest.len();
        if self.searched > self.max_line {
            return Err(io::Error::other(format!("a line of more than {} bytes is too large", self.max_line)));
        }
        Ok(lines)
    }

    fn last(self) -> Option<Bytes> {
        (!self.rest.is_empty()).then(|| self.rest.freeze())
    }
}

/// Reads lines in a thread of its own until the end, an error, or until nobody takes them any more.
pub(crate) fn read_lines(
    source: impl Read + Send + 'static,
    max_line: usize,
) -> (mpsc::Receiver<io::Result<Vec<Bytes>>>, JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let task = tokio::task::spawn_blocking(move || {
        let mut source = source;
        let mut lines = Lines::new(max_line);
        loop {
            match read_some(&mut source, &mut lines.rest) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return drop(sender.blocking_send(Err(error))),
            }
            let taken = lines.take();
            let stop = taken.is_err();
            let nothing = taken.as_ref().is_ok_and(Vec::is_empty);
            if (!nothing && sender.blocking_send(taken).is_err()) || stop {
                return;
            }
        }
        if let Some(last) = lines.last() {
            // If nobody takes it, nobody wants it.
            let _ = sender.blocking_send(Ok(vec![last]));
        }
    });
    (receiver, task)
}

/// Reads once, behind what is there.
fn read_some(source: &mut impl Read, into: &mut BytesMut) -> io::Result<usize> {
    let had = into.len();
    into.resize(had + CHUNK, 0);
    let read = loop {
        match source.read(into.get_mut(had..).unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    into.truncate(had + read.as_ref().copied().unwrap_or(0));
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Slow(Vec<u8>, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(self.1).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0.drain(..n);
            Ok(n)
        }
    }

    async fn lines(text: &[u8], at_once: usize, max: usize) -> io::Result<Vec<Bytes>> {
        let (mut receiver, task) = read_lines(Slow(text.to_vec(), at_once), max);
        let mut lines = Vec::new();
        while let Some(some) = receiver.recv().await {
            lines.extend(some?);
        }
        task.await.unwrap();
        Ok(lines)
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_come() {
        for at_once in [1, 2, 3, 1000] {
            assert_eq!(lines(b"a\n\nbc\r\n\xff", at_once, 100).await.unwrap(), [&b"a"[..], b"", b"bc\r", b"\xff"]);
            assert_eq!(lines(b"a\n", at_once, 100).await.unwrap(), [&b"a"[..]]);
            assert_eq!(lines(b"\n", at_once, 100).await.unwrap(), [&b""[..]]);
            assert!(lines(b"", at_once, 100).await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn an_endless_line_is_refused() {
        let error = lines(&[b'x'; 1000], 7, 99).await.unwrap_err();
        assert!(error.to_string().contains("99"), "{error}");
    }
}
