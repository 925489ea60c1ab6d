use std::io::IoSlice;
use std::path::Path;

use super::super::{Disk, create_dir_durably, read_file, write_all_at, write_file_atomically};
use super::{PowerCut, SimulatedDisk};

const DIR: &str = "/data/a";
const FILE: &str = "/data/a/file";

fn disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    create_dir_durably(&disk, Path::new(DIR)).unwrap();
    disk
}

fn read(disk: &SimulatedDisk, path: &str) -> Option<Vec<u8>> {
    read_file(disk, Path::new(path), 1 << 20).ok()
}

#[test]
fn what_was_not_synced_is_lost_with_the_power() {
    let disk = disk();
    let file = disk.create(Path::new(FILE)).unwrap();
    write_all_at(&*file, &mut [IoSlice::new(b"one")], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(read(&disk.power_cut(PowerCut::LoseUnsynced), FILE), None, "the name was not durable");
}

#[test]
fn names_and_bytes_are_durable_each_by_its_own_sync() {
    let disk = disk();
    let file = disk.create(Path::new(FILE)).unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
    write_all_at(&*file, &mut [IoSlice::new(b"one")], 0).unwrap();
    file.sync_data().unwrap();
    write_all_at(&*file, &mut [IoSlice::new(b"two")], 3).unwrap();
    disk.rename(Path::new(FILE), Path::new("/data/a/other")).unwrap();
    assert_eq!(read(&disk, "/data/a/other").unwrap(), b"onetwo");
    let after = disk.power_cut(PowerCut::LoseUnsynced);
    assert_eq!(read(&after, FILE).unwrap(), b"one");
    assert!(file.len().is_err(), "the old disk is without power");
}

#[test]
fn a_random_cut_keeps_what_was_synced_and_is_the_same_for_the_same_seed() {
    for seed in 0..50 {
        let build = || {
            let disk = disk();
            let file = disk.create(Path::new(FILE)).unwrap();
            disk.sync_dir(Path::new(DIR)).unwrap();
            write_all_at(&*file, &mut [IoSlice::new(&[1; 700])], 0).unwrap();
            file.sync_data().unwrap();
            write_all_at(&*file, &mut [IoSlice::new(&[2; 2000])], 700).unwrap();
            read(&disk.power_cut(PowerCut::Random(seed)), FILE).unwrap()
        };
        let found = build();
        assert_eq!(found, build(), "seed {seed}");
        assert_eq!(found[..700], [1; 700], "seed {seed}");
        assert!(found.len() <= 2700, "seed {seed}");
    }
}

#[test]
fn a_failed_sync_makes_nothing_durable_and_neither_does_the_next() {
    let disk = disk();
    let file = disk.create(Path::new(FILE)).unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
    disk.fail_syncs(0, 1);
    write_all_at(&*file, &mut [IoSlice::new(b"one")], 0).unwrap();
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(read(&disk.power_cut(PowerCut::LoseUnsynced), FILE).unwrap(), b"");
}

#[test]
fn a_full_disk_takes_what_fits_and_refuses_the_rest() {
    let disk = disk();
    let file = disk.create(Path::new(FILE)).unwrap();
    disk.set_free_bytes(Some(4));
    let error = write_all_at(&*file, &mut [IoSlice::new(b"sixsix")], 0).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 4);
    write_all_at(&*file, &mut [IoSlice::new(b"over")], 0).unwrap();
    disk.remove_file(Path::new(FILE)).unwrap();
    assert_eq!(disk.free_bytes(Path::new(DIR)).unwrap(), 4);
}

#[test]
fn faults_come_when_they_were_set_to() {
    let disk = disk();
    let file = disk.create(Path::new(FILE)).unwrap();
    disk.set_write_limit(Some(2));
    write_all_at(&*file, &mut [IoSlice::new(b"ab"), IoSlice::new(b"cde")], 0).unwrap();
    assert_eq!(read(&disk, FILE).unwrap(), b"abcde");
    disk.refuse_opens(true);
    assert!(disk.open(Path::new(FILE)).unwrap_err().to_string().contains("os error 24"));
    disk.refuse_opens(false);
    disk.fail_writes(1, 1);
    file.write_vectored_at(&[IoSlice::new(b"x")], 0).unwrap();
    assert!(file.write_vectored_at(&[IoSlice::new(b"x")], 0).is_err());
    disk.cut_power_after(Some(1));
    file.sync_data().unwrap();
    assert!(file.sync_data().is_err());
    assert!(disk.list(Path::new(DIR)).is_err());
}

#[test]
fn a_file_that_is_replaced_is_the_old_or_the_new_one_at_every_cut() {
    for cut in 0..10 {
        let disk = disk();
        write_file_atomically(&disk, Path::new(FILE), b"old").unwrap();
        disk.cut_power_after(Some(cut));
        let replaced = write_file_atomically(&disk, Path::new(FILE), b"new").is_ok();
        for how in [PowerCut::LoseUnsynced, PowerCut::KeepAll, PowerCut::Random(cut)] {
            let found = read(&disk.power_cut(how), FILE).unwrap();
            assert!(found == b"new" || (!replaced && found == b"old"), "cut {cut} {how:?}: {found:?}");
        }
    }
}
