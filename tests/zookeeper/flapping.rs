//! A server that accepts and closes, and connections that break again and again: little is used, and nothing is left behind.

use std::time::{Duration, Instant};

use hqueue_tests::figures::Figures;
use hqueue_tests::zookeeper::{Proxy, Way};
use hqueue_tests::{PATIENCE, wait};

use crate::process::ClientProcess;
use crate::support::{fresh_root, is_long, shared_server};

#[test]
fn a_server_that_accepts_and_closes_costs_little() {
    let length = Duration::from_secs(if is_long() { 60 } else { 6 });
    let proxy = Proxy::to(shared_server().address());
    let client = ClientProcess::start(&proxy.host(), &fresh_root(), &[]);
    let first = client.held();
    let (before, accepted) = (settled(&client, &proxy), proxy.accepted());
    proxy.set(Way::Closing);
    let began = Instant::now();
    proxy.cut();
    client.away();
    std::thread::sleep(length.saturating_sub(began.elapsed()));
    let after = Figures::of(client.pid());
    let (dials, cpu) = (proxy.accepted() - accepted, after.cpu_millis - before.cpu_millis);
    proxy.set(Way::Open);
    let opened = Instant::now();
    assert_ne!(client.held(), first);
    let now = settled(&client, &proxy);
    println!("{length:?} of accept and close: {dials} dials, {cpu} ms of CPU; a session {:?} after it", opened.elapsed());
    println!("before {before:?}\nafter {now:?}");
    assert!(u128::from(cpu) < length.as_millis() / 20, "{cpu} ms of CPU in {length:?}");
    assert!(dials <= 8 + length.as_secs(), "{dials} dials");
    assert_eq!((now.threads, now.descriptors), (before.threads, before.descriptors));
}

#[test]
fn connections_that_break_leave_nothing_behind() {
    let flaps = if is_long() { 50 } else { 5 };
    let proxy = Proxy::to(shared_server().address());
    let client = ClientProcess::start(&proxy.host(), &fresh_root(), &[]);
    let mut last = client.held();
    let before = settled(&client, &proxy);
    let began = Instant::now();
    for _ in 0..flaps {
        proxy.cut();
        client.away();
        let next = client.held();
        assert_ne!(next, last);
        last = next;
    }
    let took = began.elapsed();
    let now = settled(&client, &proxy);
    let cpu = now.cpu_millis - before.cpu_millis;
    println!("{flaps} flaps in {took:?}: {cpu} ms of CPU\nbefore {before:?}\nafter {now:?}");
    assert!(u128::from(cpu) * 20 < took.as_millis().max(5000), "{cpu} ms of CPU");
    assert_eq!((now.threads, now.descriptors), (before.threads, before.descriptors));
    // The dialler's connection and the client's for each session: the crate never came back to a session by itself.
    assert_eq!(proxy.first_bytes().len(), 2 * (flaps + 1));
    assert!(now.rss_bytes < before.rss_bytes + (8 << 20), "memory grows");
}

/// What it uses with one connection, once the dialler's own is gone.
fn settled(client: &ClientProcess, proxy: &Proxy) -> Figures {
    wait("only the session's connection stands", PATIENCE, || proxy.open() == 1);
    let mut last = Figures::of(client.pid());
    wait("threads and descriptors stay as they are", PATIENCE, || {
        // The step between two looks: what has not changed for so long has settled.
        std::thread::sleep(Duration::from_millis(50));
        let now = Figures::of(client.pid());
        let same = (now.threads, now.descriptors) == (last.threads, last.descriptors);
        last = now;
        same
    });
    last
}
