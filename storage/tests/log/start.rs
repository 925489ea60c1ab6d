//! What a start costs: it does not grow with what is stored.

use crate::support::{Lab, Ledger, Lie, ProcessDisk, run, segments};

/// Bytes that a start and a read at the end take, with so many puts in the store.
async fn cost(lab: &Lab, puts: i16, close: bool) -> (u64, usize) {
    let disk = lab.disk();
    let process = ProcessDisk::new(disk.clone(), Lie::None);
    let opened = lab.open(process.clone()).await;
    let mut ledger = Ledger::new(lab);
    for n in 0..puts {
        ledger.put(&opened.queue, n % 3, 2, 4000).await.unwrap();
    }
    if !close {
        process.end();
    }
    opened.store.close().await;
    let process = ProcessDisk::new(disk.clone(), Lie::None);
    let opened = lab.open(process.clone()).await;
    let last = opened.queue.committed(0).last.unwrap();
    assert_eq!(opened.queue.from(0, last).await.ids(), [last]);
    let cost = process.read_bytes();
    opened.store.close().await;
    (cost, segments(&disk).len())
}

#[test]
fn a_start_reads_no_more_for_ten_times_as_much() {
    run(async {
        for close in [true, false] {
            let lab = Lab::new(3);
            let (small, few) = cost(&lab, 40, close).await;
            let (large, many) = cost(&lab, 400, close).await;
            assert!(many >= few * 8, "{few} and {many} segments");
            // A header of a page for each segment, the newest segment, and what one read takes.
            let most = many as u64 * 4096 + 3 * (64 << 10) + small;
            assert!(large < most, "closed: {close}: a start read {small} bytes of {few} segments, {large} of {many}");
        }
    });
}
