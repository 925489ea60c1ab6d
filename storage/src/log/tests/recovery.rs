//! What a start makes of what it finds.

use std::path::Path;
use std::sync::Arc;

use super::super::folder::segment_path;
use super::super::format::block::Place;
use super::super::format::header::{FIXED_LEN, SegmentHeader};
use super::super::recovery::{Ending, recover};
use super::super::replay::replay;
use super::super::scan::block_at;
use super::super::source::Source;
use super::{Rig, UID, numbers, refused};
use crate::disk::{Disk, PowerCut, SimulatedDisk};
use crate::store::MessageStore;

const ENDINGS: [Ending; 3] = [Ending::Clean, Ending::Killed, Ending::PowerCut];

/// Some puts of both partitions, each a group of its own, and where their blocks end; behind them stand zeros.
async fn some_blocks(rig: &Rig) -> (Vec<u8>, Vec<u64>) {
    let store = rig.open();
    let queue = rig.queue(&store).await;
    for n in 0..6 {
        queue.put(n % 2, &["one", "two", "three"][..1 + n as usize % 3]).await;
    }
    store.close().await;
    let path = segment_path(&rig.dir(), 1);
    let bytes = rig.bytes(&path);
    (bytes.clone(), block_ends(rig, &path))
}

pub(super) fn block_ends(rig: &Rig, path: &Path) -> Vec<u64> {
    let file = rig.disk.open(path).unwrap();
    let len = file.len().unwrap();
    let mut source = Source::plain(file, len);
    let header = SegmentHeader::decode(&source.fetch(0, FIXED_LEN).unwrap()).unwrap();
    let mut ends = vec![header.data_start];
    while let Some(block) = block_at(&mut source, &Place::new(UID, header.epoch), *ends.last().unwrap()).unwrap() {
        ends.push(ends.last().unwrap() + block.total_len());
    }
    ends
}

/// A folder with one segment of these bytes.
fn folder_with(rig: &Rig, bytes: &[u8]) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(&rig.dir()).unwrap();
    let file = disk.create(&segment_path(&rig.dir(), 1)).unwrap();
    crate::disk::write_all_at(&*file, &mut [std::io::IoSlice::new(bytes)], 0).unwrap();
    disk
}

#[tokio::test]
async fn a_file_cut_anywhere_keeps_all_whole_blocks() {
    let rig = Rig::simulated();
    let (bytes, ends) = some_blocks(&rig).await;
    assert_eq!(ends.len(), 7);
    let behind = &bytes[ends[6] as usize..];
    assert!(behind.len() > 2048 && behind.iter().all(|byte| *byte == 0), "{} bytes are behind the blocks", behind.len());
    for cut in ends[0]..=bytes.len() as u64 {
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        for ending in ENDINGS {
            let disk = folder_with(&rig, &bytes[..cut as usize]);
            let found = recover(&disk, &rig.dir(), &rig.spec, ending).unwrap();
            assert_eq!(found.segments[&1].end(), ends[whole], "cut at {cut}, {ending:?}");
            let blocks: Vec<u64> = found.partitions.iter().map(|p| p.mark.committed.next_number).collect();
            let wanted = [0, 1].map(|p| (p..whole).step_by(2).map(|n| 1 + n as u64 % 3).sum::<u64>());
            assert_eq!(blocks, wanted, "cut at {cut}, {ending:?}");
            assert_eq!(found.damages, []);
        }
    }
}

#[tokio::test]
async fn what_is_appended_to_a_file_is_no_block() {
    let rig = Rig::simulated();
    let (bytes, ends) = some_blocks(&rig).await;
    let blocks = &bytes[..ends[6] as usize];
    let last_block = &blocks[ends[5] as usize..];
    let random: Vec<u8> = (0..64u8).map(|n| n.wrapping_mul(37) ^ 0x5a).collect();
    for behind in [&[0; 64][..], &random, b"HQB1", last_block, &blocks[ends[0] as usize..]] {
        for (before, ending) in [blocks, &bytes].into_iter().flat_map(|before| ENDINGS.map(|ending| (before, ending))) {
            let disk = folder_with(&rig, &[before, behind].concat());
            let found = recover(&disk, &rig.dir(), &rig.spec, ending).unwrap();
            assert_eq!(found.segments[&1].end(), ends[6], "{} bytes behind {}, {ending:?}", behind.len(), before.len());
            assert_eq!(found.damages, []);
        }
    }
}

/// Zeros behind the blocks are none of a torn tail's bytes, however many there are.
#[tokio::test]
async fn a_torn_tail_is_told_from_zeros_that_were_written_ahead() {
    let rig = Rig::simulated();
    let (bytes, ends) = some_blocks(&rig).await;
    let zeros = vec![0; 3 << 20];
    let half = &bytes[ends[5] as usize..][..70];
    // Up to its last byte that is none.
    let half_end = half.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    for (behind, torn) in [(&[][..], 0), (&zeros, 0), (half, half_end), (&[half, &zeros].concat(), half_end)] {
        let file = folder_with(&rig, &[&bytes[..ends[6] as usize], behind].concat()).open(&segment_path(&rig.dir(), 1)).unwrap();
        let mut source = Source::plain(Arc::clone(&file), file.len().unwrap());
        let found = replay(&mut source, &Place::new(UID, 1), ends[0], 0, Ending::PowerCut, |_, _| {}).unwrap();
        assert_eq!((found.end, found.torn_bytes), (ends[6], torn), "{} bytes behind", behind.len());
    }
}

#[tokio::test]
async fn a_changed_byte_costs_the_block_it_is_in_and_no_other() {
    let rig = Rig::simulated().without_tail();
    let (bytes, ends) = some_blocks(&rig).await;
    let path = segment_path(&rig.dir(), 1);
    let every = (ends[0]..ends[5]).step_by(if cfg!(debug_assertions) { 23 } else { 5 });
    for at in every {
        let mut changed = bytes.clone();
        changed[at as usize] ^= 0x10;
        rig.replace(&path, &changed);
        let damaged = ends.iter().filter(|end| **end <= at).count() - 1;
        let store = rig.open();
        let queue = rig.queue(&store).await;
        for partition in 0..2 {
            let (mut wanted, mut missing, mut number) = (Vec::new(), 0, 0);
            // A block whose header is damaged shows by the number of the partition's next one, if there is one.
            let is_last = damaged + 2 >= 6;
            for n in (partition..6).step_by(2) {
                let count = 1 + n as u64 % 3;
                if n == damaged {
                    missing = count;
                } else {
                    wanted.extend(number..number + count);
                }
                number += count;
            }
            let (found, told) = numbers(&queue, partition as i16).await;
            assert_eq!(found, wanted, "byte {at}, partition {partition}");
            assert!(told == missing || (is_last && told == 0), "byte {at}, partition {partition}: {told} of {missing}");
        }
        assert_eq!(store.counters().damaged_blocks, 1, "byte {at}");
        store.close().await;
    }
}

/// One group of two blocks, the first of which is damaged: after a power cut neither was ever acknowledged.
#[tokio::test]
async fn a_torn_group_is_cut_after_a_power_cut_and_kept_otherwise() {
    let rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    queue.put(0, &["first"]).await;
    let mut groups = 0;
    // Puts of both partitions while a sync runs make one group, if the threads play along.
    while groups == 0 {
        let appends: Vec<_> =
            (0..40).map(|n| queue.store.append(n % 2, crate::conformance::batch("t", &["v"])).unwrap().done).collect();
        for done in appends {
            done.await.unwrap().unwrap();
        }
        groups = two_block_groups(&rig).len();
    }
    store.close().await;
    let path = segment_path(&rig.dir(), 1);
    let (first, second) = *two_block_groups(&rig).last().unwrap();
    let mut bytes = rig.bytes(&path);
    bytes.truncate(second.1 as usize);
    bytes[first.0 as usize + 100] ^= 1;
    for ending in ENDINGS {
        let disk = folder_with(&rig, &bytes);
        let found = recover(&disk, &rig.dir(), &rig.spec, ending).unwrap();
        let wanted = if ending == Ending::PowerCut { first.0 } else { second.1 };
        assert_eq!(found.segments[&1].end(), wanted, "{ending:?}");
    }
}

type Span = (u64, u64);

/// The last two blocks of each group of the first segment that has two or more.
fn two_block_groups(rig: &Rig) -> Vec<(Span, Span)> {
    let path = segment_path(&rig.dir(), 1);
    let file = rig.disk.open(&path).unwrap();
    let len = file.len().unwrap();
    let mut source = Source::plain(file, len);
    let ends = block_ends(rig, &path);
    let blocks: Vec<_> = ends.windows(2).map(|w| (w[0], w[1])).collect();
    let group = |source: &mut Source<'_>, span: &Span| block_at(source, &Place::new(UID, 1), span.0).unwrap().unwrap().group;
    blocks.windows(2).filter(|w| group(&mut source, &w[0]) == group(&mut source, &w[1])).map(|w| (w[0], w[1])).collect()
}

#[tokio::test]
async fn a_damaged_header_costs_no_message() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(3000);
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.extend(queue.put(0, &[&value]).await);
        rig.clock.advance(1);
    }
    store.close().await;
    drop(queue);
    let segments = rig.files(".segment");
    assert!(segments.len() > 3);
    for path in [&segments[0], &segments[1], segments.last().unwrap()] {
        let good = rig.bytes(path);
        for at in [0, 40, 130] {
            let mut changed = good.clone();
            changed[at] ^= 1;
            rig.replace(path, &changed);
            let store = rig.open();
            let queue = rig.queue(&store).await;
            let found = queue.from(0, ids[0]).await;
            assert_eq!(found.ids(), ids, "{} byte {at}", path.display());
            for n in [1, 50, 99] {
                assert_eq!(queue.from(0, ids[n]).await.ids(), ids[n..], "{} byte {at}", path.display());
            }
            store.close().await;
        }
        rig.replace(path, &good);
    }
}

#[tokio::test]
async fn a_missing_segment_is_told_and_the_rest_is_served() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(3000);
    for _ in 0..60 {
        queue.put(0, &[&value]).await;
    }
    store.close().await;
    let segments = rig.files(".segment");
    rig.disk.remove_file(&segments[1]).unwrap();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let (found, damaged) = numbers(&queue, 0).await;
    assert_eq!(found.len() as u64 + damaged, 60);
    assert!(damaged > 10 && found.len() > 30, "{damaged} damaged");
    store.close().await;
}

/// A group fails half way; a shorter one is written over it. What is left of the first behind the second must not come back.
#[tokio::test]
async fn the_rest_of_a_failed_group_does_not_come_back() {
    for behind in 0..4 {
        let mut rig = Rig::simulated();
        let store = rig.open();
        let queue = rig.queue(&store).await;
        queue.put(0, &["first"]).await;
        rig.simulated.set_free_bytes(Some(600));
        let mut failing: Vec<_> = Vec::new();
        for n in 0..20 {
            let append = queue.store.append(n % 2, crate::conformance::batch("t", &["of the failed group"])).unwrap();
            failing.push((append.ids, append.done));
        }
        let mut kept = 0;
        for (_, done) in failing {
            kept += u64::from(done.await.unwrap().is_ok());
        }
        rig.simulated.set_free_bytes(None);
        for n in 0..behind {
            queue.put(n % 2, &["short"]).await;
        }
        let committed = [queue.committed(0).next_number, queue.committed(1).next_number];
        assert_eq!(committed[0] + committed[1], 1 + kept + behind as u64);
        rig.cut_power(PowerCut::KeepAll);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        for partition in 0..2 {
            let (found, damaged) = numbers(&queue, partition).await;
            let wanted = committed[partition as usize];
            assert!(found.iter().copied().eq(0..found.len() as u64), "{found:?}");
            assert!(damaged == 0 && found.len() as u64 >= wanted, "{} of {wanted}", found.len());
            let texts = queue.all(partition).await.texts();
            assert!(behind == 0 || texts.iter().filter(|text| *text == "short").count() as i16 == (behind + 1 - partition) / 2);
        }
        // It goes on as if nothing had been.
        queue.put(0, &["more"]).await;
        assert_eq!(numbers(&queue, 0).await.1, 0);
        store.close().await;
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_and_nothing_seen_goes_at_any_cut() {
    for seed in 0..60 {
        let mut rig = Rig::simulated();
        let store = rig.open();
        let queue = rig.queue(&store).await;
        rig.simulated.cut_power_after(Some(seed % 40));
        let mut acknowledged = Vec::new();
        for n in 0..20 {
            let Ok(append) = queue.store.append(0, crate::conformance::batch("t", &[&"v".repeat(n * 311)])) else { break };
            if !matches!(append.done.await, Ok(Ok(()))) {
                break;
            }
            acknowledged.extend(append.ids.iter());
        }
        let how = [PowerCut::LoseUnsynced, PowerCut::Random(seed), PowerCut::KeepAll][seed as usize % 3];
        rig.cut_power(how);
        drop(store);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        let found = queue.all(0).await;
        assert!(found.ids().starts_with(&acknowledged), "seed {seed}: {} of {}", found.ids().len(), acknowledged.len());
        assert_eq!(found.missing, [], "seed {seed}");
        // What has been seen once stays, and ids go on above it.
        rig.cut_power(PowerCut::LoseUnsynced);
        drop(store);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        assert_eq!(queue.all(0).await.ids(), found.ids(), "seed {seed}");
        let next = queue.put(0, &["next"]).await[0];
        assert!(found.ids().last().is_none_or(|last| next > *last), "seed {seed}");
        store.close().await;
    }
}

#[tokio::test]
async fn a_closed_store_refuses() {
    let rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    drop(store);
    assert!(matches!(refused(&queue, 0, &["v"]).await, crate::store::StoreError::Closed));
}
