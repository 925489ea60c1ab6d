//! The whole process is stopped for longer than its session lasts, and goes on.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hqueue_coordination::Coordinator;
use rustix::process::Signal;

use crate::process::ClientProcess;
use crate::support::{T, connect, fresh_root, options, shared_server, shows};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_stopped_finds_itself_fenced_before_it_acts() {
    let (server, root) = (shared_server(), fresh_root());
    let observer = connect(options(&server.host(), &root)).await;
    let mut client = ClientProcess::start(&server.host(), &root, &["act"]);
    let first = tokio::task::block_in_place(|| client.held());
    let mut seen = observer.watch_node(&format!("/registered-{first}"));
    shows(&mut seen, Option::is_some).await;

    client.signal(Signal::STOP);
    let stopped = Instant::now();
    shows(&mut seen, Option::is_none).await;
    let expired = stopped.elapsed();
    tokio::time::sleep_until((stopped + 2 * T).into()).await;
    let continued = now_millis();
    client.signal(Signal::CONT);

    let (acts, told) = tokio::task::block_in_place(|| after(&client, continued));
    println!("stopped for {:?}: the server ended the session after {expired:?}; then: {told:?}", 2 * T);
    assert!(told.first().is_some_and(|line| line.starts_with("fenced")), "the first thing it finds: {told:?}");
    assert!(acts.iter().all(|(session, _)| *session != first), "it acts under the session that is over: {acts:?}");
    assert!(acts.iter().any(|(session, _)| *session != first), "it never acts again");
    tokio::task::block_in_place(|| client.close());
}

/// What was done in looks at the lease after `continued`: acts with their session; and the first lines of each kind.
fn after(client: &ClientProcess, continued: u128) -> (Vec<(i64, u128)>, Vec<String>) {
    let (mut acts, mut told) = (Vec::new(), Vec::new());
    let until = Instant::now() + Duration::from_secs(5);
    while let Some(line) = client.line_within(until.saturating_duration_since(Instant::now())) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["act", session, at] if at.parse::<u128>().unwrap() >= continued => {
                if acts.is_empty() {
                    told.push(line.clone());
                }
                acts.push((session.parse().unwrap(), at.parse().unwrap()));
                if acts.len() > 20 {
                    break;
                }
            }
            ["fenced", _] => told.push(line.clone()),
            _ => {}
        }
    }
    (acts, told)
}

fn now_millis() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}
