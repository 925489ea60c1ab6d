//! The `run` scripts of `clients`, as somebody calls them who does not know how.

use std::path::Path;
use std::process::Command;

/// Nothing is installed and nothing built before it is clear what is wanted.
#[test]
fn wrong_words_are_answered_by_the_usage() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("clients");
    let build = tempfile::tempdir().unwrap();
    let mut scripts = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let script = entry.unwrap().path().join("run");
        if !script.exists() {
            continue;
        }
        scripts += 1;
        let run = |words: &[&str]| Command::new(&script).args(words).env("CARGO_TARGET_DIR", build.path()).output().unwrap();
        for words in [&[][..], &["consume"], &["producer"], &["producer", "127.0.0.1:9190", "q1", "topic"], &[""]] {
            let output = run(words);
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{} {words:?}: {err}", script.display());
            assert!(err.starts_with("usage: ") && err.contains("/run consumer [PORT]"), "{} {words:?}: {err}", script.display());
            assert!(err.contains("/run producer HOST:PORT QUEUE TOPIC VALUE..."), "{err}");
        }
        let help = run(&["--help"]);
        assert!(help.status.success() && help.stdout.starts_with(b"usage: "), "{}: {help:?}", script.display());
    }
    assert!(scripts >= 10, "{scripts} in {}", folder.display());
    assert_eq!(std::fs::read_dir(build.path()).unwrap().count(), 0, "nothing was made");
}
