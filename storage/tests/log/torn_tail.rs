//! The process or the power ends in the middle of a write: at every change of the disk, and at every byte of the last write.

use crate::support::{Change, Lab, Ledger, PutState, RecordingDisk, long, replay, run};

/// A store's life up to some put, and how far the disk had come when each put was acknowledged.
struct Life {
    changes: Vec<Change>,
    ledger: Ledger,
    acknowledged_at: Vec<(i16, usize, usize)>,
}

async fn live(lab: &Lab, puts: usize) -> Life {
    let disk = RecordingDisk::over(lab.disk());
    let opened = lab.open(disk.clone()).await;
    let mut ledger = Ledger::new(lab);
    let mut acknowledged_at = Vec::new();
    for n in 0..puts {
        let partition = (n % 3) as i16;
        ledger.put(&opened.queue, partition, 1 + n % 4, n * 17 % 90).await.unwrap();
        acknowledged_at.push((partition, n / 3, disk.len()));
        lab.clock.advance(n as i64 % 2);
    }
    let changes = disk.changes();
    opened.store.close().await;
    Life { changes, ledger, acknowledged_at }
}

impl Life {
    /// What is known when only the first `changes` changes have happened.
    fn ledger_at(&self, changes: usize) -> Ledger {
        let mut ledger = self.ledger.clone();
        for (partition, nth, at) in &self.acknowledged_at {
            if *at > changes {
                ledger.puts[*partition as usize][*nth].state = PutState::Unknown;
            }
        }
        ledger
    }

    /// Opens what is left when the end comes within change number `n`, behind `torn_at` bytes of it; then goes on with it.
    async fn check(&self, lab: &Lab, n: usize, torn_at: Option<usize>) {
        let at = format!("the end comes in change {n} of {}, behind {torn_at:?} bytes", self.changes.len());
        let disk = lab.disk();
        replay(&self.changes[..=n], torn_at, &disk);
        let mut ledger = self.ledger_at(if torn_at.is_some() { n } else { n + 1 });
        let opened = lab.open(disk.clone()).await;
        ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{at}: {what}"));
        for partition in 0..3 {
            ledger.put(&opened.queue, partition, 2, 10).await.unwrap();
        }
        opened.store.close().await;
        let opened = lab.open(disk).await;
        ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{at}, and a later start: {what}"));
        opened.store.close().await;
    }
}

#[test]
fn at_every_change_of_the_disk() {
    run(async {
        let lab = Lab::new(3);
        let life = live(&lab, 12).await;
        for n in 0..life.changes.len() {
            life.check(&lab, n, None).await;
        }
    });
}

/// The last write (in the long form all) is cut at every byte.
#[test]
fn at_every_byte_of_a_write() {
    run(async {
        let lab = Lab::new(3);
        let life = live(&lab, 12).await;
        let writes = |n: &usize| matches!(life.changes[*n], Change::Write { .. });
        let mut writes: Vec<usize> = (0..life.changes.len()).filter(writes).collect();
        if !long() {
            writes.drain(..writes.len() - 1);
        }
        for n in writes {
            let Change::Write { bytes, .. } = &life.changes[n] else { continue };
            // Where a write has pages of zeros at its end, one cut in them is like the other.
            let told = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 2).min(bytes.len());
            for torn_at in 0..told {
                life.check(&lab, n, Some(torn_at)).await;
            }
        }
    });
}
