//! Gateways that are something else, that close idle connections, that die: cases H1 and H3.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_hbase::store::HBaseOptions;
use hqueue_storage::clock::SystemClock;
use hqueue_storage::store::StoreError;
use hqueue_tests::free_port;
use hqueue_tests::hbase::HBase;

use crate::support::{block_on, open, options, queue};

const THRIFT1: &[(&str, &str)] =
    &[("HBASE_GATEWAY_CLASS", "org.apache.hadoop.hbase.thrift.ThriftServer"), ("HBASE_GATEWAY_HEAP", "192m")];
const THRIFT2: &[(&str, &str)] = &[("HBASE_GATEWAY_HEAP", "192m")];
const HTTP: &[(&str, &str)] = &[("HBASE_GATEWAY_SITE", "hbase.regionserver.thrift.http=true"), ("HBASE_GATEWAY_HEAP", "192m")];
const HASTY: &[(&str, &str)] =
    &[("HBASE_GATEWAY_SITE", "hbase.thrift.server.socket.read.timeout=1000"), ("HBASE_GATEWAY_HEAP", "192m")];

async fn refusal(address: &str) -> (String, Duration) {
    let mut wrong: HBaseOptions = options();
    wrong.gateway.addresses = vec![address.to_owned()];
    let begin = Instant::now();
    let answer = open(wrong, Arc::new(SystemClock::default())).await.map(|_| ());
    let Err(StoreError::Remote { reason, .. }) = answer else { panic!("opened at {address}: {answer:?}") };
    (reason, begin.elapsed())
}

/// A way to run a gateway: its name, arguments, environment, and what is said of it.
type Kind = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)], &'static str);

/// The start says what it is that listens there, and does not try for ever.
#[test]
fn what_is_no_gateway_for_us_is_named() {
    let hbase = HBase::shared();
    let name = |kind: &str| format!("{kind}-{}", free_port());
    let kinds: [Kind; 4] = [
        ("thrift1", &[], THRIFT1, "a Thrift1 gateway"),
        ("framed", &["-f"], THRIFT2, "the framed transport: start it without -f"),
        ("compact", &["-c"], THRIFT2, "the compact protocol: start it without -c"),
        ("http", &[], HTTP, "HTTP mode"),
    ];
    for (kind, arguments, environment, says) in kinds {
        let name = name(kind);
        let address = hbase.script("gateway", &[&[name.as_str()], arguments].concat(), environment);
        let (reason, took) = block_on(refusal(&address));
        hbase.script("kill", &[&name], &[]);
        assert!(reason.contains(says), "{kind}: {reason}");
        assert!(took < Duration::from_secs(15), "{kind}: {took:?}");
    }
    let (reason, took) = block_on(refusal(&format!("127.0.0.1:{}", free_port())));
    assert!(reason.contains("nobody"), "{reason}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_dead_gateway_is_passed_over() {
    block_on(async {
        let mut two = options();
        two.gateway.addresses.insert(0, format!("127.0.0.1:{}", free_port()));
        let (_store, queue) = queue(two, 1).await;
        for n in 0..20 {
            queue.put(0, &[&n.to_string()]).await;
        }
        assert_eq!(queue.all(0).await.messages.len(), 20);
    });
}

/// A gateway that closes connections after a second, and is killed under load: every put is answered, each message is there once.
#[test]
fn nobody_notices_idle_closes_and_a_restart() {
    let hbase = HBase::shared();
    let name = format!("victim-{}", free_port());
    let address = hbase.script("gateway", &[&name], HASTY);
    block_on(async {
        let mut by_it = options();
        by_it.gateway.addresses = vec![address];
        by_it.gateway.call_timeout = Duration::from_secs(5);
        let (_store, queue) = queue(by_it, 2).await;
        let queue = Arc::new(queue);
        let mut ids = queue.put(0, &["before"]).await;
        // Longer than it keeps idle connections: that time passes is the point.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        ids.extend(queue.put(0, &["behind the idle time"]).await);
        assert_eq!(queue.all(0).await.ids(), ids);

        let putting = {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for n in 0..150 {
                    ids.extend(queue.put(1, &[&n.to_string(), "more"]).await);
                }
                ids
            })
        };
        queue.commits.more_than(1, 20).await;
        let (killed, again) = (name.clone(), name.clone());
        tokio::task::spawn_blocking(move || hbase.script("kill", &[&killed], &[])).await.unwrap();
        tokio::task::spawn_blocking(move || hbase.script("restart", &[&again], &[])).await.unwrap();
        let ids = putting.await.unwrap();
        assert_eq!(queue.all(1).await.ids(), ids);
    });
    hbase.script("kill", &[&name], &[]);
}
