//! The last file cut, overwritten or torn at every byte, and openings cut at every operation.

use super::*;
use crate::disk::PowerCut;
use crate::file_queue::format::{DATA_START, ELEMENT_HEADER_LEN};

/// A queue that was killed with these elements, its file, and where each element ends.
fn killed() -> (SimulatedDisk, PathBuf, Vec<usize>) {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    let mut ends = vec![usize::try_from(DATA_START).unwrap()];
    for text in ["one", "", "three", "four, which is longer"] {
        queue.offer(text.as_bytes()).unwrap();
        ends.push(ends.last().unwrap() + ELEMENT_HEADER_LEN + text.len());
    }
    let disk = kill(&disk, queue);
    let file = files(&disk, ".segment").remove(0);
    (disk, file, ends)
}

fn whole(ends: &[usize], len: usize) -> Vec<&'static str> {
    let texts = ["one", "", "three", "four, which is longer"];
    ends.iter().skip(1).zip(texts).filter(|(end, _)| **end <= len).map(|(_, text)| text).collect()
}

#[test]
fn a_file_that_ends_at_any_byte_keeps_what_is_whole() {
    let (disk, file, ends) = killed();
    for len in ends[0]..=*ends.last().unwrap() {
        let disk = copy(&disk);
        disk.open(&file).unwrap().set_len(len as u64).unwrap();
        let mut queue = open(&disk);
        queue.offer(b"after").unwrap();
        let disk = kill(&disk, queue);
        let wanted = [whole(&ends, len), vec!["after"]].concat();
        assert_eq!(drain(&mut open(&disk)), (wanted.into_iter().map(str::to_owned).collect(), vec![]), "cut at {len}");
    }
}

#[test]
fn an_end_that_is_zeros_or_garbage_from_any_byte_on_keeps_what_is_whole() {
    let (disk, file, ends) = killed();
    let mut random = fastrand::Rng::with_seed(7);
    for at in ends[0]..*ends.last().unwrap() {
        for is_garbage in [false, true] {
            let disk = copy(&disk);
            // The byte at the cut is another one.
            let byte = bytes_of(&disk, &file)[at];
            let tail: Vec<u8> = (at..ends[4] + 100).map(|_| if is_garbage { random.u8(..) } else { 0 }).collect();
            overwrite(&disk, &file, at, &tail);
            overwrite(&disk, &file, at, &[if is_garbage { byte ^ 1 } else { 0 }]);
            let kept = if is_garbage || byte != 0 { whole(&ends, at) } else { continue };
            let mut queue = open(&disk);
            queue.offer(b"after").unwrap();
            drop(queue);
            let (found, lost) = drain(&mut open(&disk));
            assert_eq!((found.len(), &lost), (kept.len() + 1, &vec![]), "from {at}");
            assert_eq!(found[..kept.len()], kept[..], "from {at}");
        }
    }
}

#[test]
fn what_was_cut_never_comes_back() {
    // Three elements of one length, the first of them torn by the power cut: new ones are written over it, which must not bring the
    // others back.
    let disk = SimulatedDisk::new();
    let mut queue = open_with(&disk, FileQueueOptions { offers: LATER, ..strict() }).unwrap();
    queue.offer(b"kept").unwrap();
    queue.sync().unwrap();
    ["aaaa", "bbbb", "cccc"].iter().for_each(|text| queue.offer(text.as_bytes()).unwrap());
    let disk = kill(&disk, queue);
    let file = files(&disk, ".segment").remove(0);
    let start = usize::try_from(DATA_START).unwrap();
    overwrite(&disk, &file, start + 2 * ELEMENT_HEADER_LEN + 4, b"x");
    // Another start of the machine.
    let disk = copy(&disk.power_cut(PowerCut::KeepAll)).power_cut_with_boot();
    let mut queue = open(&disk);
    assert_eq!(queue.len(), 1);
    queue.offer(b"dddd").unwrap();
    let disk = kill(&disk, queue);
    assert_eq!(drain(&mut open(&disk)), (vec!["kept".to_owned(), "dddd".to_owned()], vec![]));
}

impl SimulatedDisk {
    /// The same files after another start of the machine, all of them durable.
    fn power_cut_with_boot(&self) -> Self {
        for path in files(self, "") {
            self.open(&path).unwrap().sync_data().unwrap();
        }
        ["/", "/data", DIR].iter().for_each(|dir| self.sync_dir(Path::new(dir)).unwrap());
        self.power_cut(PowerCut::LoseUnsynced)
    }
}

#[test]
fn a_first_opening_may_be_cut_at_every_operation() {
    for cut in 0..30 {
        for seed in 0..10 {
            let disk = SimulatedDisk::new();
            disk.cut_power_after(Some(cut));
            let offered = open_with(&disk, strict()).is_ok_and(|mut queue| queue.offer(b"one").is_ok());
            let disk = disk.power_cut(PowerCut::Random(seed));
            let mut queue = open(&disk);
            let (found, lost) = drain(&mut queue);
            assert_eq!(lost, [], "cut {cut}, seed {seed}");
            assert!(found == ["one"] || (found.is_empty() && !offered), "cut {cut}, seed {seed}: {found:?}");
            queue.offer(b"two").unwrap();
            assert_eq!(drain(&mut queue).0, ["two"]);
        }
    }
}

#[test]
fn a_recovery_may_be_cut_at_every_operation() {
    let disk = SimulatedDisk::new();
    let mut queue = open_with(&disk, FileQueueOptions { offers: LATER, ..strict() }).unwrap();
    let texts: Vec<String> = (0..40).map(|n| format!("{n} {}", "x".repeat(2000))).collect();
    texts.iter().for_each(|text| queue.offer(text.as_bytes()).unwrap());
    queue.sync().unwrap();
    queue.offer(b"torn").unwrap();
    let before = disk.power_cut(PowerCut::Random(3));
    drop(queue);
    for cut in 0..20 {
        for seed in 0..5 {
            let disk = copy(&before).power_cut_with_boot();
            disk.cut_power_after(Some(cut));
            drop(open_with(&disk, strict()));
            let (found, lost) = drain(&mut open(&disk.power_cut(PowerCut::Random(seed))));
            assert_eq!((&found[..40], &lost), (&texts[..], &vec![]), "cut {cut}, seed {seed}");
        }
    }
}
