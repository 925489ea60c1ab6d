//! Somebody else ends our session.

use std::time::Instant;

use hqueue_coordination::{Coordinator, NodeKind};
use hqueue_tests::zookeeper::Proxy;

use crate::raw::Raw;
use crate::support::{T, away, connect, fresh_root, next_session, session_id, shared_server, with_timeout};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_another_ends_is_noticed_within_a_heartbeat() {
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let coordinator = connect(with_timeout(T, &proxy.host(), &root)).await;
    let first = session_id(&*coordinator);
    coordinator.create("/e", b"", NodeKind::Ephemeral).await.unwrap();

    let password = proxy.first_bytes().iter().find_map(|bytes| password_of(bytes, first)).expect("the session's password passed");
    let began = Instant::now();
    Raw::attach(server.address(), first, &password).close();
    let noticed = away(&*coordinator).await - began;
    println!("T = {T:?}: a session closed by another was noticed after {noticed:?}");
    assert!(noticed < T / 6);
    let second = next_session(&*coordinator, first).await;
    println!("a new session after {:?}", began.elapsed());
    assert_ne!(first, second);
    assert_eq!(coordinator.get("/e").await.unwrap(), None);
}

/// length, protocol, timeout, session, length of the password, password.
fn password_of(response: &[u8], session: i64) -> Option<[u8; 16]> {
    let (id, password) = (response.get(12..20)?, response.get(24..40)?);
    (i64::from_be_bytes(id.try_into().ok()?) == session).then_some(password.try_into().ok()?)
}
