//! A file queue on the machine's own disk: the example, and locks between processes.

#![allow(clippy::unwrap_used, reason = "what is called by tests")]

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use hqueue_storage::file_queue::{FileQueue, FileQueueError, FileQueueOptions, SyncWhen};

#[allow(dead_code, reason = "its main is for people")]
#[path = "../examples/file_queue.rs"]
mod example;

/// In the environment of the other process: the folder whose queue it holds.
const HELD: &str = "HQUEUE_TEST_HELD";

#[test]
fn the_example_works_off_all_orders() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = FileQueue::open(folder.path()).unwrap();
    queue.offer(b"from the time before").unwrap();
    queue.close().unwrap();
    assert_eq!(example::run(folder.path(), 200).unwrap(), 201);
    assert!(FileQueue::open(folder.path()).unwrap().is_empty());
}

/// Run again as another process, this holds a queue and offers to it until it is killed.
fn hold(dir: &str) {
    let options = FileQueueOptions { offers: SyncWhen::Each, ..FileQueueOptions::default() };
    let mut queue = FileQueue::open_with(dir, options).unwrap();
    queue.offer_all(&["one", "two"]).unwrap();
    println!("held");
    // Until the other end is closed, which a kill comes before.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn other_process(dir: &PathBuf) -> Child {
    let this = env::current_exe().unwrap();
    let mut other = Command::new(this)
        .args(["another_process_is_refused_until_the_first_has_ended", "--exact", "--nocapture"])
        .env(HELD, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("held")), "the other process could not open the queue");
    other
}

#[test]
fn another_process_is_refused_until_the_first_has_ended() {
    if let Ok(dir) = env::var(HELD) {
        return hold(&dir);
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("queue");
    let mut other = other_process(&dir);
    assert_eq!(FileQueue::open(&dir).unwrap_err(), FileQueueError::InUse { dir: dir.clone() });
    other.kill().unwrap();
    other.wait().unwrap();
    // The lock has ended with the process, and what it offered is there.
    let mut queue = FileQueue::open(&dir).unwrap();
    assert_eq!(queue.poll().unwrap().unwrap(), b"one");
    drop(queue);
    let mut queue = FileQueue::open(&dir).unwrap();
    assert_eq!(queue.poll().unwrap().unwrap(), b"two");
    assert_eq!(queue.poll().unwrap(), None);
}

#[test]
fn elements_of_all_sizes_go_through_real_files() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileQueueOptions {
        segment_bytes: 8 << 20,
        offers: SyncWhen::Within(std::time::Duration::from_millis(50)),
        ..FileQueueOptions::default()
    };
    let element = |n: usize| vec![u8::try_from(n % 251).unwrap(); (n * n * 97) % (3 << 20)];
    for round in 0..3 {
        let mut queue = FileQueue::open_with(folder.path(), options.clone()).unwrap();
        (0..40).for_each(|n| queue.offer(&element(round * 40 + n)).unwrap());
        for n in 0..40 {
            assert!(queue.poll().unwrap().unwrap() == element(round * 40 + n), "round {round}, element {n}");
        }
        queue.close().unwrap();
    }
    let bytes: u64 = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 40 << 20, "files are used again: {bytes}");
}
