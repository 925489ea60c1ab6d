//! Finds a server that serves, before the client crate is let near it: the crate would wait 134 s for a host that drops SYNs, and
//! dial one that accepts and closes thousands of times a second.
//!
//! Addresses are tried in random order. The next one starts after [`STAGGER`] or when one has failed; the first that gives a
//! session wins. That session is only to learn what timeout the server grants, which the crate does not tell; it is closed at
//! once.

use std::io::Error;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};

use super::handshake::{close_session, open_session, until_gone};

/// A name is resolved in so long, or passed over.
const RESOLVE: Duration = Duration::from_secs(3);

/// A server is connected and gives a session in so long, or is passed over.
const ATTEMPT: Duration = Duration::from_secs(3);

/// After so long without an answer the next address is tried beside the first.
const STAGGER: Duration = Duration::from_millis(300);

/// Ending the session that was only for asking is waited for so long.
const END_THROWAWAY: Duration = Duration::from_millis(500);

/// A server that serves.
#[derive(Debug)]
pub(super) struct Dialled {
    pub(super) address: SocketAddr,
    /// The session timeout that it grants.
    pub(super) granted: Duration,
    /// Carries the session that told so.
    throwaway: TcpStream,
}

impl Dialled {
    /// Ends the session that was only for asking; if that fails, the server ends it by itself.
    pub(super) async fn end_throwaway(self) {
        if let Ok(Err(error)) = timeout(END_THROWAWAY, close_session(self.throwaway)).await {
            tracing::debug!(address = %self.address, %error, "the session that asked for the timeout was not closed");
        }
    }
}

/// Finds a server; the error says what became of each.
pub(super) async fn dial(hosts: &[String], asked: Duration) -> Result<Dialled, String> {
    let (mut addresses, mut failures) = resolve(hosts).await;
    fastrand::shuffle(&mut addresses);
    let mut attempts = FuturesUnordered::new();
    loop {
        match addresses.pop() {
            Some(address) => attempts.push(attempt(address, asked)),
            None if attempts.is_empty() => return Err(failures.join("; ")),
            None => {}
        }
        tokio::select! {
            Some(done) = attempts.next() => match done {
                Ok(dialled) => return Ok(dialled),
                Err(failure) => failures.push(failure),
            },
            () = sleep(STAGGER), if !addresses.is_empty() => {}
        }
    }
}

/// Waits until a server knows that a node is gone; as seldom needed as a session ends.
pub(super) async fn wait_until_gone(address: SocketAddr, asked: Duration, full: &str) -> Result<(), String> {
    let mut dialled = attempt(address, asked).await?;
    let gone = until_gone(&mut dialled.throwaway, full).await.map_err(|error| format!("{address}: {error}"));
    dialled.end_throwaway().await;
    gone
}

async fn resolve(hosts: &[String]) -> (Vec<SocketAddr>, Vec<String>) {
    let lookups = hosts.iter().map(|host| async move { (host, timeout(RESOLVE, lookup_host(host)).await) });
    let (mut addresses, mut failures) = (Vec::new(), Vec::new());
    for (host, looked_up) in join_all(lookups).await {
        match looked_up {
            Ok(Ok(found)) => addresses.extend(found),
            Ok(Err(error)) => failures.push(format!("{host}: {error}")),
            Err(_) => failures.push(format!("{host}: the name is not resolved within {RESOLVE:?}")),
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    (addresses, failures)
}

async fn attempt(address: SocketAddr, asked: Duration) -> Result<Dialled, String> {
    match timeout(ATTEMPT, connect(address, asked)).await {
        Ok(Ok((granted, throwaway))) => Ok(Dialled { address, granted, throwaway }),
        Ok(Err(error)) => Err(format!("{address}: {error}")),
        Err(_) => Err(format!("{address}: no answer within {ATTEMPT:?}")),
    }
}

async fn connect(address: SocketAddr, asked: Duration) -> Result<(Duration, TcpStream), Error> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let granted = open_session(&mut stream, asked).await?;
    Ok((granted, stream))
}
