//! `--durability`: what an acknowledgement means in each of its levels, as far as a process can show it.

use hqueue_tests::{Broker, PATIENCE, wait};

/// Written, synced a little later: an acknowledgement survives the process, in fewer syncs.
#[test]
fn async_survives_the_process() {
    let mut broker = Broker::with_flags(&["--durability", "async"]);
    broker.create("q", 2);
    let mut ids = Vec::new();
    let (written, synced) = (broker.metrics().sum("hqueue_commits_total", &[]), broker.metrics().sum("hqueue_syncs_total", &[]));
    for n in 0..200 {
        ids.extend(broker.put("q", 0, &[n.to_string()]));
    }
    let commits = broker.metrics().sum("hqueue_commits_total", &[]) - written;
    let syncs = broker.metrics().sum("hqueue_syncs_total", &[]) - synced;
    println!("{commits} commits, {syncs} syncs");
    assert!(syncs < commits / 2.0, "{syncs} syncs for {commits} commits");
    broker.kill();
    broker.restart();
    assert_eq!(broker.scan("q", 0).into_iter().map(|m| m.id).collect::<Vec<_>>(), ids);
    broker.put("q", 1, &["synced at the stop"]);
    broker.stop();
    broker.restart();
    assert_eq!(broker.scan("q", 1).len(), 1);
    wait("the sync comes by itself", PATIENCE, || {
        broker.put("q", 0, &["more"]);
        broker.metrics().sum("hqueue_syncs_total", &[]) > 0.0
    });
}

/// The default: each put that is alone is synced before its acknowledgement.
#[test]
fn sync_is_the_default() {
    let broker = Broker::start();
    broker.create("q", 1);
    let before = broker.metrics().sum("hqueue_syncs_total", &[]);
    for n in 0..50 {
        broker.put("q", 0, &[n.to_string()]);
    }
    let syncs = broker.metrics().sum("hqueue_syncs_total", &[]) - before;
    assert!(syncs >= 50.0, "{syncs} syncs for 50 puts, one after the other");
}
