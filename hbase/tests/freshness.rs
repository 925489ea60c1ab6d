//! The generated code is what the compiler makes of HBase's IDL.

use std::path::Path;
use std::process::Command;

const GENERATED: &str = "hbase/src/generated/hbase.rs";

#[test]
fn the_committed_code_is_what_the_contract_says() {
    // scripts/generate would install a missing compiler; a test must not.
    let version = Command::new("thrift").arg("--version").output();
    let version = version.expect("this test needs the Thrift compiler: apt-get install thrift-compiler");
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    std::fs::create_dir_all(&folder).unwrap();
    let made = Command::new(root.join("scripts/generate")).arg(&folder).output().unwrap();
    assert!(made.status.success(), "scripts/generate: {}", String::from_utf8_lossy(&made.stderr));

    let fresh = std::fs::read_to_string(folder.join("hbase.rs")).unwrap();
    let committed = std::fs::read_to_string(root.join(GENERATED)).unwrap();
    let differs = fresh.lines().zip(committed.lines()).position(|(fresh, committed)| fresh != committed);
    let line = differs.map_or("one is longer".to_owned(), |line| format!("first in line {}", line + 1));
    let hint = "after a change of hbase/idl/hbase.thrift run scripts/generate; it is made with version 0.17.0 of the compiler";
    assert!(fresh == committed, "{GENERATED} is not what {version} makes of hbase/idl/hbase.thrift ({line}): {hint}");
}
