//! Power cuts: everything acknowledged is there, nothing is torn, and a second start finds the same.

use super::*;
use crate::disk::PowerCut;

/// A batch of records that say which batch, which record and how many.
fn labelled(batch_number: usize, count: usize, filler: usize) -> Vec<String> {
    (0..count).map(|record| format!("{batch_number}:{record}:{count}:{}", "x".repeat(filler))).collect()
}

/// What was written: for each batch in order whether it was acknowledged.
#[derive(Debug, Default)]
struct History {
    batches: Vec<(Vec<String>, bool)>,
}

impl History {
    fn append(&mut self, journal: &mut Journal, random: &mut fastrand::Rng) -> bool {
        let records = labelled(self.batches.len(), random.usize(1..5), random.usize(..700));
        let parts: Vec<&str> = records.iter().map(String::as_str).collect();
        match journal.append(&batch(&parts)) {
            // Nothing was changed: it must not come back.
            Err(JournalError::NoSpace { .. }) => true,
            appended => {
                self.batches.push((records, appended.is_ok()));
                appended.is_ok()
            }
        }
    }

    fn rewrite(&self, journal: &mut Journal) -> Result<(), JournalError> {
        let snapshot = self.snapshot();
        journal.rewrite(&mut |out| snapshot.iter().for_each(|record| out.push(&[record.as_bytes()])))
    }

    fn snapshot(&self) -> Vec<String> {
        self.batches.iter().filter(|(_, acknowledged)| *acknowledged).flat_map(|(records, _)| records.clone()).collect()
    }

    /// Takes over what was found: the acknowledged batches, and maybe the last one that was not.
    fn settle(&mut self, found: &[String], context: &str) {
        let acknowledged = self.snapshot();
        assert!(found.starts_with(&acknowledged), "{context}: something acknowledged is missing");
        let rest = &found[acknowledged.len()..];
        let last = self.batches.last().filter(|(_, acknowledged)| !acknowledged).map(|(records, _)| records.as_slice());
        assert!(rest.is_empty() || Some(rest) == last, "{context}: a batch is torn: {rest:?}");
        self.batches = vec![(found.to_vec(), true)];
    }
}

#[test]
fn acknowledged_batches_survive_any_power_cut() {
    let base = fastrand::u64(..);
    println!("seed {base}");
    for seed in (0..300).map(|n| base.wrapping_add(n)) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = SimulatedDisk::new();
        let mut history = History::default();
        for life in 0..4 {
            let context = format!("seed {seed}, life {life}");
            disk.cut_power_after(Some(random.u64(..40)));
            let opened = open(&disk);
            if let Ok((mut journal, found)) = opened {
                history.settle(&found, &context);
                while history.append(&mut journal, &mut random) {
                    if random.u8(..8) == 0 && history.rewrite(&mut journal).is_err() {
                        break;
                    }
                }
            }
            disk = disk.power_cut(PowerCut::Random(random.u64(..)));
        }
        let found = records_of(&disk);
        history.settle(&found, &format!("seed {seed}, the end"));
        assert_eq!(records_of(&disk), found, "seed {seed}: the second start");
    }
}

#[test]
fn a_rewrite_may_be_cut_at_every_operation() {
    let base = fastrand::u64(..);
    println!("seed {base}");
    let old = ["a", "b", "c"].map(str::to_owned);
    let large = "x".repeat(3000);
    for cut in 0.. {
        let mut finished = false;
        for how in (0..20).map(|n| PowerCut::Random(base.wrapping_add(n))).chain([PowerCut::LoseUnsynced, PowerCut::KeepAll]) {
            let disk = SimulatedDisk::new();
            let (mut journal, _) = open(&disk).unwrap();
            journal.append(&batch(&["a", "b"])).unwrap();
            journal.append(&batch(&["c"])).unwrap();
            disk.cut_power_after(Some(cut));
            finished = journal.rewrite(&mut |out| out.push(&[large.as_bytes()])).is_ok();
            let disk = disk.power_cut(how);
            let found = records_of(&disk);
            let new = found == [large.clone()];
            assert!(new || (!finished && found == old), "cut after {cut} operations, {how:?}: {found:?}");
            assert_eq!(disk.list(Path::new(DIR)).unwrap().len(), 1, "nothing is left of the rewrite");
            open(&disk).unwrap().0.append(&batch(&["later"])).unwrap();
            assert_eq!(records_of(&disk).len(), found.len() + 1);
        }
        if finished {
            return assert!(cut >= 4, "{cut} operations");
        }
    }
}

#[test]
fn a_first_start_may_be_cut_at_every_operation() {
    let base = fastrand::u64(..);
    println!("seed {base}");
    for cut in 0..12 {
        for n in 0..20 {
            let disk = SimulatedDisk::new();
            disk.cut_power_after(Some(cut));
            let opened = open(&disk).is_ok();
            let disk = disk.power_cut(PowerCut::Random(base.wrapping_add(n)));
            let (mut journal, records) = open(&disk).unwrap();
            assert!(records.is_empty());
            assert!(!opened || !journal.is_new(), "cut after {cut}: what was opened is there");
            journal.append(&batch(&["a"])).unwrap();
        }
    }
}

#[test]
fn faults_of_all_kinds_together_lose_nothing() {
    let base = fastrand::u64(..);
    println!("seed {base}");
    for seed in (0..300).map(|n| base.wrapping_add(n)) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = SimulatedDisk::new();
        let mut history = History::default();
        for life in 0..6 {
            disk.fail_syncs(random.u64(..9), random.u64(..2));
            disk.fail_writes(random.u64(..20), random.u64(..2));
            disk.set_free_bytes(random.bool().then(|| random.u64(..6000)));
            match open(&disk) {
                Ok((mut journal, found)) => {
                    history.settle(&found, &format!("seed {seed}, life {life}"));
                    for _ in 0..8 {
                        if random.u8(..8) == 0 && matches!(history.rewrite(&mut journal), Err(JournalError::Poisoned { .. }))
                            || !history.append(&mut journal, &mut random)
                        {
                            break;
                        }
                    }
                }
                Err(error) => assert!(!matches!(error, JournalError::Damaged { .. }), "seed {seed}, life {life}: {error}"),
            }
            if random.bool() {
                disk = disk.power_cut(PowerCut::Random(random.u64(..)));
            }
        }
        let disk = disk.power_cut(PowerCut::KeepAll);
        history.settle(&records_of(&disk), &format!("seed {seed}, the end"));
    }
}
