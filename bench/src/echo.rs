//! The bare loopback call: a process that answers each frame with eight bytes. What a push is compared with.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::{Doing, Outcome};

const ANSWER: [u8; 8] = [0, 0, 0, 4, 0, 0, 0, 0];

/// Serves until the process is ended.
pub async fn run(listen: SocketAddr) -> Outcome<()> {
    let listener = TcpListener::bind(listen).await.doing(|| format!("listening on {listen}"))?;
    loop {
        let (socket, _) = listener.accept().await.doing(|| "accepting a connection".to_owned())?;
        tokio::spawn(async move {
            if let Err(error) = answer(socket).await {
                eprintln!("echo: {error}");
            }
        });
    }
}

async fn answer(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = BytesMut::with_capacity(64 << 10);
    while socket.read_buf(&mut buffer).await? > 0 {
        while let Some((length, rest)) = buffer.split_first_chunk() {
            let size = u32::from_be_bytes(*length) as usize;
            if rest.len() < size {
                break;
            }
            buffer.advance(4 + size);
            socket.write_all(&ANSWER).await?;
        }
        buffer.reserve(64 << 10);
    }
    Ok(())
}
