//! Files that a crash or a bad disk has left damaged: what is whole is served, what is not is said, and a start never panics.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hqueue_protocol::generated::{THQueueServiceSyncClient, TScanReport};
use hqueue_tests::gateway::everything;
use hqueue_tests::order::check_rising;
use hqueue_tests::{Answer, Broker, Consumer, Id, PATIENCE, long_form, seed, wait};
use tempfile::TempDir;

/// What a killed broker has left, to be damaged again and again.
struct Remains {
    broker: Broker,
    /// An untouched copy.
    folder: TempDir,
    /// Of `q`, partition 0: one block each.
    ids: Vec<Id>,
}

const COUNT: usize = 60;

impl Remains {
    fn make() -> Self {
        let mut broker = Broker::start();
        for queue in ["q", "other"] {
            broker.create(queue, 2);
            broker.put(queue, 1, &["neighbour"]);
        }
        let ids = (0..COUNT).flat_map(|n| broker.put("q", 0, &[format!("{n} {}", "x".repeat(100))])).collect();
        broker.put("other", 0, &["a", "b"]);
        broker.kill();
        let folder = tempfile::tempdir().unwrap();
        copy(&broker.data(), folder.path());
        Self { broker, folder, ids }
    }

    /// Puts the copy back, has it damaged, and starts the broker with it. Returns what is in partition 0 of `q`.
    fn start_after(&mut self, damage: impl FnOnce(&Path)) -> Vec<Id> {
        let data = self.broker.data();
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir(&data).unwrap();
        copy(self.folder.path(), &data);
        damage(&data);
        self.broker.restart();
        let stored = self.broker.scan("q", 0);
        check_rising(&stored);
        stored.into_iter().map(|m| m.id).collect()
    }

    /// The others are untouched, and everything goes on.
    fn check_and_kill(&mut self, what: &str) {
        for queue in ["q", "other"] {
            assert_eq!(self.broker.scan(queue, 1).len(), 1, "{what}: the neighbours of {queue} are served");
        }
        assert_eq!(self.broker.scan("other", 0).len(), 2, "{what}");
        let next = self.broker.put("q", 0, &["next"])[0];
        assert!(next > *self.ids.last().unwrap(), "{what}: {next}");
        self.broker.kill();
        self.broker.restart();
        assert!(self.broker.scan("q", 0).iter().any(|m| m.id == next), "{what}: what is put afterwards stays");
        self.broker.kill();
        assert!(!self.broker.log().contains("panicked"), "{what}");
    }
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success());
}

fn segment(data: &Path) -> PathBuf {
    let segments = fs::read_dir(data.join("queues/q")).unwrap().map(|e| e.unwrap().path());
    segments.filter(|p| p.extension().is_some_and(|e| e == "segment")).max().expect("a segment")
}

fn change(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    how(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Where the last block of a segment ends: with the zero that ends a message. Zeros behind that are no data.
fn end_of_data(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |at| bytes.len().min(at + 2))
}

#[test]
fn a_torn_tail_is_cut_and_nothing_else() {
    let mut remains = Remains::make();
    let mut random = seed("a_torn_tail_is_cut_and_nothing_else");
    for bytes in [1, 7, 64] {
        let found = remains.start_after(|data| {
            change(&segment(data), |b| {
                let end = end_of_data(b);
                b.truncate(end - bytes);
            });
        });
        let whole = &remains.ids[..COUNT - 1];
        assert!(found == whole || found == remains.ids, "cut by {bytes}: {} of {COUNT} are there", found.len());
        remains.check_and_kill(&format!("cut by {bytes}"));
    }
    for (what, tail) in [("zeros", vec![0; 64]), ("random bytes", (0..64).map(|_| random.u8(..)).collect())] {
        let found = remains.start_after(|data| {
            change(&segment(data), |b| {
                b.truncate(end_of_data(b));
                b.extend(&tail);
            });
        });
        assert!(found == remains.ids, "{what} appended: {} of {COUNT} are there", found.len());
        remains.check_and_kill(what);
    }
}

/// A byte anywhere in the middle: at most the one block that it is in is missing, and that is said. Long form: `HQUEUE_LONG_FLIPS=500`.
#[test]
fn a_damaged_byte_costs_one_block() {
    let mut remains = Remains::make();
    let mut random = seed("a_damaged_byte_costs_one_block");
    for _ in 0..long_form("HQUEUE_LONG_FLIPS").unwrap_or(6) {
        let mut at = 0;
        let logged = remains.broker.log().len();
        let found = remains.start_after(|data| {
            change(&segment(data), |b| {
                // Behind the neighbour's block, before the last ones: those may pass for a torn tail.
                let first = b.windows(8).position(|w| w == b"xxxxxxxx").unwrap();
                at = random.usize(first..end_of_data(b) * 3 / 4);
                b[at] ^= 1 << random.u8(0..8);
            });
        });
        let there: BTreeSet<Id> = found.iter().copied().collect();
        let lost: Vec<usize> = (0..COUNT).filter(|n| !there.contains(&remains.ids[*n])).collect();
        println!("a bit at {at}: lost {lost:?}");
        assert!(lost.len() <= 1, "a bit at {at}: lost {lost:?}");
        if !lost.is_empty() {
            let log = remains.broker.log()[logged..].to_lowercase();
            assert!(log.contains("damage"), "a bit at {at}: the log says nothing\n{log}");
        }
        remains.check_and_kill(&format!("a bit at {at}"));
    }
}

/// The index is a view of the log: without it, or with another one, everything is there.
#[test]
fn the_index_can_be_lost() {
    let mut remains = Remains::make();
    let index_files = |data: &Path| -> Vec<PathBuf> {
        let output = Command::new("find").arg(data.join("index")).args(["-type", "f"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(PathBuf::from).collect()
    };
    type Damage<'a> = &'a dyn Fn(&Path);
    let damages: [(&str, Damage<'_>); 5] = [
        ("no index", &|data| fs::remove_dir_all(data.join("index")).unwrap()),
        ("no checkpoint of the index", &|data| drop(fs::remove_file(data.join("checkpoint")))),
        ("an empty checkpoint", &|data| fs::write(data.join("checkpoint"), "").unwrap()),
        ("empty index files", &|data| index_files(data).iter().for_each(|f| fs::write(f, "").unwrap())),
        ("garbage in the index files", &|data| {
            index_files(data)
                .iter()
                .for_each(|f| change(f, |b| b.iter_mut().for_each(|b| *b = b.wrapping_mul(31).wrapping_add(7))));
        }),
    ];
    for (what, damage) in damages {
        let found = remains.start_after(damage);
        assert!(found == remains.ids, "{what}: {} of {COUNT} are there", found.len());
        remains.check_and_kill(what);
    }
}

/// The journal of queues and subscribers ends in the middle of a record.
#[test]
fn a_torn_journal_loses_no_queue() {
    let mut remains = Remains::make();
    for tail in [&b"\x00"[..], b"\xff\xff\xff\xff", &[0; 100], b"some other bytes that are no record"] {
        let found = remains.start_after(|data| change(&data.join("coordination/coordination.journal"), |b| b.extend(tail)));
        assert!(found == remains.ids, "{tail:?}");
        remains.check_and_kill(&format!("{tail:?}"));
    }
}

/// One block of partition 0 in the middle is damaged.
fn damage_one_block(data: &Path) {
    change(&segment(data), |b| {
        let middle = end_of_data(b) / 2;
        let value = b[middle..].windows(8).position(|w| w == b"xxxxxxxx").unwrap();
        b[middle + value] = b'y';
    });
}

/// A scanner passes over the block that cannot be read, and says so to those who ask.
#[test]
fn a_scanner_says_what_it_has_passed_over() {
    let mut remains = Remains::make();
    let found = remains.start_after(damage_one_block);
    assert_eq!(found.len(), COUNT - 1);
    let mut gateway = remains.broker.gateway();
    let scanner = gateway.message_scanner_open("q".into(), 0, everything()).unwrap();
    assert_eq!(gateway.message_scanner_report(scanner).unwrap(), TScanReport::new(0, 0), "before it has read");
    let list = gateway.message_scanner_get_list(scanner, 1000).unwrap();
    assert_eq!(list.len(), COUNT - 1);
    assert_eq!(gateway.message_scanner_report(scanner).unwrap(), TScanReport::new(0, 1));
    assert!(gateway.message_scanner_get_list(scanner, 1000).unwrap().is_empty());
    assert_eq!(gateway.message_scanner_report(scanner).unwrap(), TScanReport::new(0, 1), "it is counted once");
}

/// A subscriber passes over the block that cannot be read, and what it has missed is counted.
#[test]
fn a_subscriber_goes_on_behind_a_damaged_block() {
    let mut remains = Remains::make();
    remains.start_after(damage_one_block);
    let consumer = Consumer::start();
    remains.broker.subscribe("q", "s", &consumer.address(), &[]);
    remains.broker.put("q", 0, &["end"]);
    wait("what is whole comes", PATIENCE, || consumer.has("end"));
    remains.broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), COUNT + 2 - 1, "all but one of partition 0, the neighbour, and the end");
    assert!(remains.broker.log().contains("damaged"));
    assert_eq!(remains.broker.subscription("q", "s").expired(), 0, "damage is not taken for expiry");
}

/// What lies behind it may fail as often as it likes: the damage is counted, and said, once.
#[test]
fn damage_is_said_once_however_often_it_is_read() {
    for ordering in ["partition", "none"] {
        let mut remains = Remains::make();
        remains.start_after(|data| {
            change(&segment(data), |b| {
                let at = b.windows(8).position(|w| w == b"xxxxxxxx").unwrap();
                b[at] = b'y';
            });
        });
        let consumer = Consumer::answering(|_| Answer::Value(-1));
        let options = [("retry-min", "10ms"), ("retry-max", "10ms"), ("max-attempts", "1000000"), ("ordering", ordering)];
        remains.broker.subscribe("q", "s", &consumer.address(), &options);
        wait("it fails again and again", PATIENCE, || consumer.call_count() >= 10);
        remains.broker.run(&["set_subscriber", "q", "s", "--batch-messages", "7"]).text();
        let calls = consumer.call_count();
        wait("and again", PATIENCE, || consumer.call_count() >= calls + 10);
        let said = remains.broker.log().matches("messages are damaged and are not delivered").count();
        assert_eq!(said, 1, "{ordering}");
        assert_eq!(remains.broker.subscription("q", "s").expired(), 0, "{ordering}");
        remains.broker.kill();
    }
}
