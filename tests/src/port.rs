//! Ports for servers.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports that were handed out in this process.
static TAKEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A port that nobody listens on, below the kernel's range for outgoing connections: while a broker is down, no client of another
/// test may get its port, nor may a retry connect to itself.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn free_port() -> u16 {
    for _ in 0..1000 {
        let port = fastrand::u16(15_000..32_000);
        let first = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(port);
        if first && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port in 1000 attempts");
}
