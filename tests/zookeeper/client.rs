//! A process that holds a session, for tests that stop it or measure what it uses.
//!
//! `zookeeper-client CONNECT TIMEOUT_MS [act]`: prints `held ID`, `away` and `closed` as the session changes, until standard
//! input ends. With `act` it acts as an owner would, again and again while its lease holds, and prints `act ID MILLIS` (the time
//! of the look at the lease, since 1970), or `fenced MILLIS` when it may not. Everything that is logged goes to standard error.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hqueue_coordination::zookeeper::{ZooKeeperCoordinator, ZooKeeperOptions};
use hqueue_coordination::{Coordinator, NodeKind, SessionState};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE).with_writer(std::io::stderr).init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [connect, timeout, rest @ ..] = words.as_slice() else { panic!("CONNECT TIMEOUT_MS [act]") };
    let timeout = Duration::from_millis(timeout.parse().expect("milliseconds"));
    let options = ZooKeeperOptions::parse(connect).expect("a connect string");
    let coordinator = Arc::new(ZooKeeperCoordinator::start(ZooKeeperOptions { session_timeout: timeout, ..options }));
    // Something to read again in every session.
    let _watched: Vec<_> = (0..20).map(|n| coordinator.watch_node(&format!("/n{n}"))).collect();
    if rest.first().is_some_and(|word| word == "act") {
        std::thread::spawn({
            let coordinator = Arc::clone(&coordinator);
            move || act(&*coordinator)
        });
    }
    tokio::select! {
        () = tell(Arc::clone(&coordinator)) => {}
        _ = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())) => {}
    }
    coordinator.close().await;
    say("closed");
}

/// Prints the state of the session as it changes, and registers in every new one.
async fn tell(coordinator: Arc<ZooKeeperCoordinator>) {
    let mut session = coordinator.session();
    let mut last = None;
    loop {
        let id = match *session.borrow_and_update() {
            SessionState::Held { id, .. } => Some(id),
            SessionState::Away => None,
            SessionState::Closed => return,
        };
        if last != Some(id) {
            last = Some(id);
            if let Some(id) = id {
                // It may fail, as the session may be over already.
                let _ = coordinator.create(&format!("/registered-{id}"), b"", NodeKind::Ephemeral).await;
                say(&format!("held {id}"));
            } else {
                say("away");
            }
        }
        if session.changed().await.is_err() {
            return;
        }
    }
}

fn act(coordinator: &dyn Coordinator) {
    let session = coordinator.session();
    let mut was_fenced = false;
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis();
        let state = *session.borrow();
        match state {
            SessionState::Held { id, lease_until: Some(until) } if tokio::time::Instant::now() < until => {
                was_fenced = false;
                say(&format!("act {id} {now}"));
            }
            _ if was_fenced => {}
            _ => {
                was_fenced = true;
                say(&format!("fenced {now}"));
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn say(line: &str) {
    let mut out = stdout().lock();
    // Nobody may be listening any more.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
