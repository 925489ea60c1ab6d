//! A file system that fills up soon.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A file system in memory; it is unmounted with its value.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts one of this size, or says why that cannot be done here (it takes root).
    pub fn mount(mebibytes: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m,mode=700"), "hqueue-tests"]).arg(folder.path());
        let output = mount.output().map_err(|error| format!("mount cannot be run: {error}"))?;
        if output.status.success() {
            Ok(Self { folder })
        } else {
            Err(format!("a tmpfs cannot be mounted: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The broker on it was killed before: nothing holds it any more.
        let status = Command::new("umount").arg(self.folder.path()).status();
        if !status.is_ok_and(|s| s.success()) {
            eprintln!("{} is still mounted", self.folder.path().display());
        }
    }
}
