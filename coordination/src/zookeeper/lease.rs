//! How long a session is certain, and when it has to be confirmed: pure arithmetic on the timeout that the server granted.
//!
//! A heartbeat is a **write**: only the leader ends sessions, and a follower that has lost its leader goes on answering reads for
//! a while. Yet a write that a follower passes on does not itself count as a sign of life at the leader; what counts is the list
//! of live sessions that the follower sends with its ping, every half tick. A session timeout is at least two ticks, so what the
//! leader has heard when it carries out a write is at most `T/4`, or one heartbeat (`T/6`), older than that write. The lease is
//! `2T/3` from when the last confirmed heartbeat was sent, which leaves `T/3` for it.

use std::time::Duration;

use tokio::time::Instant;

/// The times of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    granted: Duration,
}

impl Lease {
    pub(super) const fn new(granted: Duration) -> Self {
        Self { granted }
    }

    /// From one heartbeat to the next.
    pub(super) const fn interval(self) -> Duration {
        Duration::from_nanos(self.nanos() / 6)
    }

    /// A heartbeat is answered within this time, or the session is given up.
    pub(super) const fn deadline(self) -> Duration {
        Duration::from_nanos(self.nanos() / 3)
    }

    /// Until when the session is certain, if a request sent at `sent` was confirmed.
    pub(super) fn until(self, sent: Instant) -> Instant {
        sent + self.deadline() * 2
    }

    const fn nanos(self) -> u64 {
        // A granted timeout is an i32 of milliseconds.
        self.granted.as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_heartbeat_in_time_keeps_the_lease_and_a_late_one_never_outlives_the_session() {
        for millis in [3000, 4000, 10_000, 40_000, i32::MAX as u64] {
            let granted = Duration::from_millis(millis);
            let (lease, sent) = (Lease::new(granted), Instant::now());
            // The next heartbeat goes out an interval later, or when a slow one is answered at last.
            for next in [sent + lease.interval(), sent + lease.deadline()] {
                assert!(next + lease.deadline() <= lease.until(sent), "a gap between two leases");
            }
            // The leader counts from at most T/4 before.
            assert!(lease.until(sent) + granted / 12 <= sent - granted / 4 + granted, "the lease outlives the session");
        }
    }
}
