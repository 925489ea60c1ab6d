//! What stands in ZooKeeper is what `zk-layout.md` says: every node has a row, and every row is seen.

use std::collections::BTreeSet;

use hqueue_protocol::generated::THQueueServiceSyncClient;
use hqueue_tests::gateway::registration;
use hqueue_tests::{Cluster, Consumer, Follower, Hand, PATIENCE, Registered, wait};

/// A row of the table: the path with its places, and whether the node is ephemeral.
#[derive(Debug)]
struct Row {
    path: String,
    ephemeral: bool,
    /// It stands during a command only, or with messages in HBase only: there may be none at the moment of the look.
    passing: bool,
}

/// Reads `| path | kind | … |`.
fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../zk-layout.md");
    let text = std::fs::read_to_string(path).expect("zk-layout.md is there");
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| path | kind |")).skip(2);
    let mut rows = Vec::new();
    for line in lines.by_ref().take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let path = cells[1].split('`').nth(1).unwrap_or_else(|| panic!("no path in {line}")).to_owned();
        let ephemeral = cells[2].starts_with("ephemeral");
        assert!(ephemeral || cells[2].starts_with("persistent"), "no kind in {line}");
        let passing = cells[cells.len() - 2].starts_with("during") || cells[1].contains('†');
        rows.push(Row { path, ephemeral, passing });
    }
    assert!(rows.len() > 5, "the table is not found");
    rows
}

/// A path fits if its names do; a place is `<…>`, alone or behind a word.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(pattern, name)| name_fits(pattern, name))
}

fn name_fits(pattern: &str, name: &str) -> bool {
    let Some(open) = pattern.find('<') else { return pattern == name };
    let (before, place) = pattern.split_at(open);
    let Some(rest) = name.strip_prefix(before) else { return false };
    match place {
        "<partition>" => rest.parse::<u16>().is_ok_and(|n| n.to_string() == rest),
        "<number>" => rest.len() == 10 && rest.bytes().all(|b| b.is_ascii_digit()),
        // Names that have rows of their own are no subscribers.
        "<subscriber>" => rest != "owner" && !rest.is_empty(),
        _ => !rest.is_empty(),
    }
}

/// How exact a pattern is: `/queues/<queue>/assignment` before `/queues/<queue>/<partition>`.
fn places(pattern: &str) -> usize {
    pattern.matches('<').count()
}

#[test]
fn every_node_is_in_the_table_and_every_row_is_seen() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    let consumers = [Consumer::start(), Consumer::start(), Consumer::start()];
    cluster.brokers[1].subscribe("q", "fixed", &consumers[0].address(), &[]);
    cluster.brokers[0].gateway().subscribe("q".into(), registration("announced", &consumers[1].address())).unwrap();
    cluster.register("q", 2, "hand", &consumers[2].address());
    let second = consumers[2].address();
    cluster.hand.register(Registered { suffix: "-2", topics: &["a"], ..Registered::new("q", 2, "hand", &second) });
    let follower =
        Follower::start(cluster.brokers[0].words(&["subscribe", "q", "--name", "cli", "--topic", "t", "--from", "earliest"]));
    for p in 0..2 {
        cluster.brokers[0].put("q", p, &["a"]);
        let _ = follower.line();
    }
    wait("all have all", PATIENCE, || consumers[0].count() == 2 && consumers[1].count() == 2);
    let (rows, mut seen) = (rows(), BTreeSet::new());
    // From above: within its root a session does not see its own bookkeeping.
    let (server, root) = cluster.zookeeper().split_once('/').unwrap();
    let root = format!("/{root}");
    let nodes: Vec<_> = Hand::at(&format!("{server}/")).tree(&root).into_iter().skip(1).collect();
    let nodes: Vec<_> = nodes.into_iter().map(|(path, node)| (path[root.len()..].to_owned(), node)).collect();
    assert!(nodes.len() > 30, "{nodes:?}");
    for (path, node) in &nodes {
        let row = rows.iter().enumerate().filter(|(_, row)| fits(&row.path, path)).min_by_key(|(_, row)| places(&row.path));
        let (number, row) = row.unwrap_or_else(|| panic!("{path} is not in the table"));
        assert_eq!(node.owner_session.is_some(), row.ephemeral, "{path} is not as {} says", row.path);
        seen.insert(number);
    }
    let unseen: Vec<&Row> =
        rows.iter().enumerate().filter(|(n, row)| !row.passing && !seen.contains(n)).map(|(_, row)| row).collect();
    assert!(unseen.is_empty(), "rows of the table that nothing stands for: {unseen:?}");
    println!("{} nodes, {} rows", nodes.len(), rows.len());
    assert_eq!(follower.terminate().0, Some(0));
}
