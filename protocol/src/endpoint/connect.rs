//! Making a connection to `host:port`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

/// Connects within a time, name resolution included. Of several addresses each gets its share. The error is for people.
pub(super) async fn connect(address: &str, within: Duration) -> Result<TcpStream, String> {
    let deadline = Instant::now() + within;
    let candidates = resolve(address, deadline).await?;
    let mut reason = "the name has no address".to_owned();
    for (tried, candidate) in candidates.iter().enumerate() {
        let left = u32::try_from(candidates.len() - tried).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        reason = match timeout_at(Instant::now() + share, TcpStream::connect(candidate)).await {
            Err(_) => format!("no connection within {within:?} (timeout)"),
            Ok(Err(error)) => explain(&error),
            // A port that nobody listens on may meet itself when it is also the one that the system chose for this end.
            Ok(Ok(stream)) if stream.local_addr().ok() == stream.peer_addr().ok() => "connection refused".to_owned(),
            Ok(Ok(stream)) => return stream.set_nodelay(true).map(|()| stream).map_err(|error| explain(&error)),
        };
    }
    Err(reason)
}

/// A literal address needs no resolver.
async fn resolve(address: &str, deadline: Instant) -> Result<Vec<SocketAddr>, String> {
    if let Ok(literal) = address.parse() {
        return Ok(vec![literal]);
    }
    match timeout_at(deadline, lookup_host(address)).await {
        Err(_) => Err("cannot resolve the name in time (timeout)".to_owned()),
        Ok(Err(error)) => Err(format!("cannot resolve the name: {error}")),
        Ok(Ok(found)) => Ok(found.collect()),
    }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        _ => error.to_string(),
    }
}
