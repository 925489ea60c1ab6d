//! Where typed lines are kept, and which are not.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The file, in a folder that is made if it is not there. `None` without a home.
pub(super) fn file() -> Option<io::Result<PathBuf>> {
    let absolute = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    let folder = state.join("hqueue");
    Some(fs::create_dir_all(&folder).map(|()| folder.join("history")))
}

/// Lines with a password are not.
pub(super) fn is_kept(line: &str) -> bool {
    !line.trim().is_empty() && !line.contains("--zookeeper-auth") && !line.contains("zookeeper_auth")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        assert!(is_kept("list") && !is_kept("  "));
        assert!(!is_kept("list --connect zk://a --zookeeper-auth u:secret"));
    }
}
