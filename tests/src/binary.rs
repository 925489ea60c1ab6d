//! Where the program under test is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `hqueue` program: the one that `HQUEUE_BIN` names, else the workspace's own, built once a test run in the profile of the
/// tests. (It belongs to another package, so cargo does not build it for these tests by itself.)
///
/// # Panics
/// If it cannot be built.
pub fn hqueue() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var_os("HQUEUE_BIN").map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    // <target>/<profile>/deps/e2e-0123456789abcdef
    let test = std::env::current_exe().expect("the path of the test program");
    let folder = test.parent().and_then(Path::parent).expect("a test program lies in <target>/<profile>/deps");
    let target = folder.parent().expect("a profile's folder lies in the target folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "hqueue-cli", "--bin", "hqueue", "--target-dir"]).arg(target);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.ends_with("release") {
        command.arg("--release");
    }
    let status = command.status().expect("cargo can be run");
    assert!(status.success(), "{command:?} ended with {status}");
    folder.join("hqueue")
}
