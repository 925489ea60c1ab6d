//! Taking puts: one task reads a connection, another answers what is safe.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, watch};

use super::Put;
use super::log::{Entry, Log};

/// New room is made for so much.
const ROOM_BYTES: usize = 256 << 10;
/// A read has room for at least so much.
const LEAST_ROOM: usize = 16 << 10;
const LENGTH_BYTES: usize = 4;
/// The partition and the count of messages.
const HEAD_BYTES: usize = LENGTH_BYTES + 6;
const MAX_FRAME: usize = 64 << 20;

pub(super) async fn serve(socket: TcpStream, log: Arc<Log>, held: Arc<Semaphore>) {
    if let Err(error) = socket.set_nodelay(true) {
        eprintln!("floor: a producer's connection: {error}");
        return;
    }
    let (reader, writer) = socket.into_split();
    let (safe, counts) = watch::channel(0);
    let answers = tokio::spawn(answer(writer, counts));
    if let Err(error) = take(reader, &log, &held, Arc::new(safe)).await {
        eprintln!("floor: a producer's connection: {error}");
    }
    answers.abort();
}

async fn take(mut reader: OwnedReadHalf, log: &Log, held: &Arc<Semaphore>, safe: Arc<watch::Sender<u32>>) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(ROOM_BYTES);
    loop {
        while let Some((frame, partition)) = cut(&mut buffer)? {
            let size = u32::try_from(frame.len()).map_err(io::Error::other)?;
            let permit = Arc::clone(held).acquire_many_owned(size).await.map_err(io::Error::other)?;
            log.append(Entry { put: Put { frame, partition, _held: permit }, safe: Arc::clone(&safe) });
        }
        if reader.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// The next whole put, without a copy; or makes room for the rest of it.
fn cut(buffer: &mut BytesMut) -> io::Result<Option<(Bytes, u16)>> {
    let Some((length, rest)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
        make_room(buffer, 0);
        return Ok(None);
    };
    let size = LENGTH_BYTES + u32::from_be_bytes(*length) as usize;
    if !(HEAD_BYTES..=MAX_FRAME).contains(&size) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a put of {size} bytes")));
    }
    if buffer.len() < size {
        let missing = size - buffer.len();
        make_room(buffer, missing);
        return Ok(None);
    }
    let partition = rest.first_chunk().map_or(0, |partition| u16::from_be_bytes(*partition));
    Ok(Some((buffer.split_to(size).freeze(), partition)))
}

fn make_room(buffer: &mut BytesMut, missing: usize) {
    if buffer.capacity() - buffer.len() < missing.max(LEAST_ROOM) {
        buffer.reserve(missing.max(ROOM_BYTES));
    }
}

async fn answer(mut writer: OwnedWriteHalf, mut counts: watch::Receiver<u32>) -> io::Result<()> {
    let mut answered: u32 = 0;
    let mut out = Vec::new();
    while counts.changed().await.is_ok() {
        let safe = *counts.borrow_and_update();
        while answered != safe {
            answered = answered.wrapping_add(1);
            out.extend_from_slice(&4u32.to_be_bytes());
            out.extend_from_slice(&answered.to_be_bytes());
        }
        writer.write_all(&out).await?;
        out.clear();
    }
    Ok(())
}
