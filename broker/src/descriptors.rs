//! File descriptors: connections and segment files need them, and a limit that is too low shows only under load.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Below so many a start warns.
const LOW: u64 = 4096;

/// Raises the soft limit to the hard one, says what it is, and warns when it is low.
pub(crate) fn raise_limit() {
    let found = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: found.maximum, maximum: found.maximum };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => found.maximum,
        Err(_) => found.current,
    };
    match limit {
        Some(limit) if limit < LOW => {
            tracing::warn!(
                limit,
                "few file descriptors are allowed; every connection and every segment file takes one: raise the limit (ulimit -n)"
            );
        }
        Some(limit) => tracing::info!(limit, "file descriptors"),
        None => {}
    }
}
