//! Ticks that come on time: the runtime's own timers are coarser (1 ms) than what is measured here.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};
use tokio::io::unix::AsyncFd;

#[derive(Debug)]
pub(super) struct Ticker(AsyncFd<OwnedFd>);

impl Ticker {
    /// The first tick comes after `first`.
    pub(super) fn every(first: Duration, period: Duration) -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let spec = Itimerspec { it_interval: timespec(period), it_value: timespec(first.max(Duration::from_nanos(1))) };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
        // What replaces it is an unsafe function; a descriptor that is owned is what that asks for.
        #[allow(deprecated, reason = "the replacement is unsafe")]
        let timer = AsyncFd::new(timer)?;
        Ok(Self(timer))
    }

    /// Waits for the next tick; those that were missed come with it. Cancel safe.
    pub(super) async fn tick(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            let mut count = [0; 8];
            if let Ok(read) = ready.try_io(|timer| rustix::io::read(timer.get_ref(), &mut count).map_err(io::Error::from)) {
                return read.map(drop);
            }
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(time.subsec_nanos()) }
}
