//! The index is lost, damaged, old, or another's (case S2): the log alone says what there is.

use std::fs;
use std::path::{Path, PathBuf};

use hqueue_storage::conformance::Message;
use hqueue_storage::disk::SimulatedDisk;

use crate::support::{Lab, Ledger, copy, copy_folder, run, with_seeds};

const PARTITIONS: i16 = 4;

/// A closed store of several segments, with an index of the older ones.
struct Base {
    lab: Lab,
    disk: SimulatedDisk,
    wanted: Vec<Vec<Message>>,
    /// Copies of the index as it was at the end, and after half of the puts.
    index: PathBuf,
    old_index: PathBuf,
}

impl Base {
    async fn new() -> Self {
        let lab = Lab::new(PARTITIONS);
        let disk = lab.disk();
        let (index, old_index) = (lab.scratch("index"), lab.scratch("old-index"));
        let mut ledger = Ledger::new(&lab);
        for copied in [&old_index, &index] {
            let opened = lab.open(disk.clone()).await;
            for n in 0..120 {
                ledger.put(&opened.queue, n as i16 % PARTITIONS, 1 + n % 4, n * 41 % 2500).await.unwrap();
                lab.clock.advance(1);
            }
            opened.store.close().await;
            copy_folder(&lab.index(), copied);
        }
        let opened = lab.open(disk.clone()).await;
        let mut wanted = Vec::new();
        for partition in 0..PARTITIONS {
            wanted.push(opened.queue.all(partition).await.messages);
        }
        opened.store.close().await;
        Self { lab, disk, wanted, index, old_index }
    }

    /// Everything is served from a copy of the log beside the index that `prepare` makes, at once and after more puts.
    async fn check(&self, what: &str, prepare: impl FnOnce(&Path)) {
        let disk = self.lab.disk();
        copy(&self.disk, &disk);
        self.lab.drop_index();
        copy_folder(&self.index, &self.lab.index());
        prepare(&self.lab.index());
        let mut wanted = self.wanted.clone();
        for start in 0..2 {
            let opened = self.lab.open(disk.clone()).await;
            for partition in 0..PARTITIONS {
                let found = opened.queue.all(partition).await;
                let right = &mut wanted[partition as usize];
                assert!(found.messages == *right, "{what}, start {start}: {} of {} messages", found.messages.len(), right.len());
                assert_eq!(found.missing, [], "{what}, start {start}");
                let middle = right[right.len() / 2].id;
                assert_eq!(opened.queue.from(partition, middle).await.ids().len(), right.len() - right.len() / 2, "{what}");
                let counted = opened.queue.count(partition, middle, &[], 100_000).await;
                assert_eq!(counted, ((right.len() - right.len() / 2) as u64, true), "{what}");
                opened.queue.put(partition, &["later"]).await;
                *right = opened.queue.all(partition).await.messages;
            }
            opened.store.close().await;
        }
    }
}

#[test]
fn without_the_folder_or_what_is_in_it() {
    run(async {
        let base = Base::new().await;
        base.check("untouched", |_| {}).await;
        base.check("the folder is gone", |index| fs::remove_dir_all(index).unwrap()).await;
        base.check("the folder is empty", |index| {
            fs::remove_dir_all(index).unwrap();
            fs::create_dir(index).unwrap();
        })
        .await;
        base.check("a file in its place", |index| {
            fs::remove_dir_all(index).unwrap();
            fs::write(index, "no folder").unwrap();
        })
        .await;
        for path in inside(&base.index) {
            let in_copy = |index: &Path| index.join(path.strip_prefix(&base.index).unwrap());
            base.check(&format!("{} is gone", path.display()), |index| fs::remove_file(in_copy(index)).unwrap()).await;
        }
    });
}

#[test]
fn cut_and_overwritten_files() {
    run(async {
        let base = Base::new().await;
        for path in inside(&base.index) {
            let len = fs::metadata(&path).unwrap().len();
            for (what, keep) in [("empty", 0), ("cut in half", len / 2), ("cut by one byte", len.saturating_sub(1))] {
                base.check(&format!("{} is {what}", path.display()), |index| {
                    let file = fs::OpenOptions::new().write(true).open(index.join(path.strip_prefix(&base.index).unwrap()));
                    file.unwrap().set_len(keep).unwrap();
                })
                .await;
            }
            for (what, byte) in [("zeros", 0), ("ones", 0xff)] {
                base.check(&format!("{} is all {what}", path.display()), |index| {
                    fs::write(index.join(path.strip_prefix(&base.index).unwrap()), vec![byte; len as usize]).unwrap();
                })
                .await;
            }
        }
    });
}

#[test]
fn changed_bytes() {
    run(async {
        let base = Base::new().await;
        with_seeds(6, 500, |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let damage = |index: &Path| {
                let files = inside(index);
                let path = &files[random.usize(..files.len())];
                let mut bytes = fs::read(path).unwrap();
                for _ in 0..random.usize(1..50) {
                    if let Some(byte) = bytes.len().checked_sub(1).map(|last| random.usize(..=last)) {
                        bytes[byte] = random.u8(..);
                    }
                }
                fs::write(path, bytes).unwrap();
            };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(base.check("changed bytes", damage)));
        });
    });
}

#[test]
fn what_a_hard_stop_leaves_behind() {
    run(async {
        let base = Base::new().await;
        base.check("an unfinished snapshot", |index| {
            fs::write(database(index).join("snap.0000000000001000.generating"), [7; 100]).unwrap()
        })
        .await;
        base.check("an empty snapshot", |index| fs::write(database(index).join("snap.0000000000FFFFFF"), []).unwrap()).await;
        base.check("a damaged snapshot", |index| fs::write(database(index).join("snap.0000000000FFFFFF"), [9; 1000]).unwrap())
            .await;
    });
}

#[test]
fn an_index_of_another_time_or_log() {
    run(async {
        let base = Base::new().await;
        let other = Base::new().await;
        base.check("an old index", |index| replace(index, &base.old_index)).await;
        base.check("the index of another log", |index| replace(index, &other.index)).await;
    });
}

/// Some entries are not there: sled came back with holes.
#[test]
fn holes() {
    run(async {
        let base = Base::new().await;
        with_seeds(6, 200, |seed| {
            let damage = |index: &Path| {
                let mut random = fastrand::Rng::with_seed(seed);
                let database = sled::open(database(index)).unwrap();
                let mut removed = 0;
                for name in database.tree_names() {
                    let tree = database.open_tree(name).unwrap();
                    for key in tree.iter().keys().map(Result::unwrap) {
                        if random.u8(..) < 100 {
                            tree.remove(key).unwrap();
                            removed += 1;
                        }
                    }
                }
                database.flush().unwrap();
                assert!(removed > 3, "{removed} entries were removed");
            };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(base.check("holes", damage)));
        });
    });
}

/// Entries that name the places of others: what they say is checked against the log.
#[test]
fn entries_that_are_wrong() {
    run(async {
        let base = Base::new().await;
        with_seeds(6, 200, |seed| {
            let damage = |index: &Path| {
                let mut random = fastrand::Rng::with_seed(seed);
                let database = sled::open(database(index)).unwrap();
                let mut changed = 0;
                for name in database.tree_names() {
                    let tree = database.open_tree(name).unwrap();
                    let entries: Vec<_> = tree.iter().map(Result::unwrap).collect();
                    changed += entries.len();
                    for (key, value) in &entries {
                        // Values of one length are of one kind.
                        let others: Vec<_> = entries.iter().filter(|(_, other)| other.len() == value.len()).collect();
                        tree.insert(key, &others[random.usize(..others.len())].1).unwrap();
                    }
                }
                database.flush().unwrap();
                assert!(changed > 3, "{changed} entries were changed");
            };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(base.check("wrong entries", damage)));
        });
    });
}

/// The folder of the database in the folder of the index.
fn database(index: &Path) -> PathBuf {
    let folders = fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    folders.max().expect("there is a database in the index")
}

fn replace(index: &Path, by: &Path) {
    fs::remove_dir_all(index).unwrap();
    copy_folder(by, index);
}

/// Every file below a folder of the machine.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(inside(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
