//! What is logged: no password, and no flood when nobody answers.

use std::time::Duration;

use hqueue_tests::zookeeper::{Proxy, Way};

use crate::process::ClientProcess;
use crate::support::{fresh_root, shared_server};

#[test]
fn neither_a_password_nor_a_flood_is_logged() {
    let proxy = Proxy::with(shared_server().address(), Way::Refused);
    let mut client = ClientProcess::start(&proxy.host(), &fresh_root(), &[]);
    std::thread::sleep(Duration::from_secs(1));
    proxy.set(Way::Closing);
    std::thread::sleep(Duration::from_secs(1));
    proxy.set(Way::Open);
    let first = client.held();
    proxy.cut();
    client.away();
    client.held();
    client.close();
    let log = client.log();
    let lines = log.lines().count();
    println!("{lines} lines at all levels:\n{log}");
    for words in
        ["no session with ZooKeeper", "a session with ZooKeeper", "the connection to ZooKeeper ended", &format!("{first:#x}")]
    {
        assert!(log.contains(words), "{words:?} is not logged");
    }
    for words in ["zookeeper_async", "passwd", "password"] {
        assert!(!log.contains(words), "{words:?} is logged");
    }
    assert!(lines < 30, "{lines} lines");
}
