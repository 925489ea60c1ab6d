//! Reads and writes that are carried through to their end, on any disk.

use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};

use super::{Disk, DiskFile, MAX_SLICES};

/// Fills the buffer; `UnexpectedEof` if the file ends before.
pub fn read_exact_at(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let (mut rest, mut at) = (buffer, offset);
    while !rest.is_empty() {
        match file.read_at(rest, at) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                rest = rest.get_mut(n..).unwrap_or_default();
                at = at.saturating_add(n as u64);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all the slices, one after the other. They are used up on the way. After an error any part may have been written.
pub fn write_all_at(file: &dyn DiskFile, slices: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
    let (mut rest, mut at) = (slices, offset);
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let some = rest.get(..MAX_SLICES).unwrap_or(rest);
        match file.write_vectored_at(some, at) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => {
                IoSlice::advance_slices(&mut rest, n);
                at = at.saturating_add(n as u64);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// So many zeros, as slices to be written.
pub fn zeros<'a>(len: u64) -> impl Iterator<Item = IoSlice<'a>> {
    let whole = ZEROS.len() as u64;
    let rest = usize::try_from(len % whole).unwrap_or(0);
    let slices = (0..len / whole).map(|_| &ZEROS[..]).chain(ZEROS.get(..rest).filter(|rest| !rest.is_empty()));
    slices.map(IoSlice::new)
}

/// All of a small file; `FileTooLarge` if it has more than `limit` bytes.
pub fn read_file(disk: &dyn Disk, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let len = file.len()?;
    if len > limit {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| ErrorKind::FileTooLarge)?];
    read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Puts a small file in place of what may have its name, durably: after a power cut there is the old one or the new one.
/// `<path>.new` is used on the way. The folder must be durable.
pub fn write_file_atomically(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let fresh = PathBuf::from(name);
    match disk.remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(&fresh)?;
    write_all_at(&*file, &mut [IoSlice::new(bytes)], 0)?;
    file.sync_data()?;
    disk.rename(&fresh, path)?;
    disk.sync_dir(holder_of(path))
}

/// Creates a folder and those above it that are missing, so that they survive a power cut.
pub fn create_dir_durably(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    // The folder itself may be there from a process that ended before it was durable.
    let mut holders = vec![holder_of(dir)];
    let mut at = dir;
    while !disk.exists(at)? && at != holder_of(at) {
        at = holder_of(at);
        holders.push(holder_of(at));
    }
    disk.create_dir_all(dir)?;
    holders.iter().rev().try_for_each(|holder| disk.sync_dir(holder))
}

/// The folder that has the name of `path`.
fn holder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}
