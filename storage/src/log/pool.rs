//! A fixed number of threads that do what they are given, in order, and some of it not before a moment.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Some threads. What they are given must bound itself: each queue has at most one commit under way, each reader one read.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    timed: BinaryHeap<Reverse<Timed>>,
    given: u64,
    stopping: bool,
}

/// In the order of moments, and of being given.
struct Timed {
    at: Instant,
    number: u64,
    job: Job,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("waiting", &self.shared.lock().jobs.len()).finish_non_exhaustive()
    }
}

impl Pool {
    /// Starts `threads` threads called `name`.
    pub(super) fn start(name: &'static str, threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let pool = Self { shared: Arc::clone(&shared), threads: Mutex::default() };
        for n in 0..threads {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("{name}-{n}")).spawn(move || shared.work())?;
            pool.lock_threads().push(thread);
        }
        Ok(pool)
    }

    /// Gives the threads something to do. False if they are stopping: it is not done then.
    pub(super) fn submit(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.shared.lock();
        if !state.stopping {
            state.jobs.push_back(Box::new(job));
            self.shared.wake.notify_one();
        }
        !state.stopping
    }

    /// The same, not before a moment. What is not due when the threads stop is not done.
    pub(super) fn submit_at(&self, at: Instant, job: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.shared.lock();
        if !state.stopping {
            state.given += 1;
            let number = state.given;
            state.timed.push(Reverse(Timed { at, number, job: Box::new(job) }));
            self.shared.wake.notify_one();
        }
        !state.stopping
    }

    /// Does something on a thread and hands its result over. The receiver sees an end if the threads are stopping.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
        let (answer, result) = oneshot::channel();
        self.submit(move || {
            // Nobody may be waiting any more.
            let _ = answer.send(job());
        });
        result
    }

    /// Is there more to do than the threads have in hand?
    pub(super) fn has_waiting(&self) -> bool {
        !self.shared.lock().jobs.is_empty()
    }

    /// Has what was given done, takes nothing new, and returns when the threads have ended.
    pub(super) fn stop(&self) {
        self.shared.begin_stop();
        let threads = std::mem::take(&mut *self.lock_threads());
        for thread in threads {
            // A thread that drops the last handle does not wait for itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    fn lock_threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.begin_stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_stop(&self) {
        self.lock().stopping = true;
        self.wake.notify_all();
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a thread of the store met a bug and goes on with its next work");
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.take_due(Instant::now()) {
                return Some(job);
            }
            if state.stopping {
                return None;
            }
            let due = state.timed.peek().map(|Reverse(timed)| timed.at);
            state = match due {
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let wait = at.saturating_duration_since(Instant::now());
                    self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl State {
    fn take_due(&mut self, now: Instant) -> Option<Job> {
        if self.timed.peek().is_some_and(|Reverse(timed)| timed.at <= now) {
            return self.timed.pop().map(|Reverse(timed)| timed.job);
        }
        self.jobs.pop_front()
    }
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn timed_work_is_done_when_it_is_due_in_the_order_of_moments() {
        let pool = Pool::start("test", 1).unwrap();
        let (sender, done) = mpsc::channel();
        let given = Instant::now();
        for after_ms in [30, 20] {
            let sender = sender.clone();
            pool.submit_at(given + Duration::from_millis(after_ms), move || sender.send((after_ms, Instant::now())).unwrap());
        }
        drop(sender);
        let done: Vec<(u64, Instant)> = done.iter().collect();
        assert_eq!(done.iter().map(|(after_ms, _)| *after_ms).collect::<Vec<_>>(), [20, 30]);
        assert!(done.iter().all(|(after_ms, at)| *at >= given + Duration::from_millis(*after_ms)));
    }

    #[test]
    fn a_stop_has_everything_done_that_was_given_and_takes_nothing_new() {
        let pool = Pool::start("test", 2).unwrap();
        let (sender, done) = mpsc::channel();
        for n in 0..100 {
            let sender = sender.clone();
            pool.submit(move || sender.send(n).unwrap());
        }
        drop(sender);
        pool.stop();
        assert_eq!(done.iter().count(), 100);
        assert!(!pool.submit(|| {}));
        assert!(pool.run(|| 1).blocking_recv().is_err());
    }

    #[test]
    fn a_thread_survives_a_bug() {
        let pool = Pool::start("test", 1).unwrap();
        assert!(pool.run(|| panic!("on purpose")).blocking_recv().is_err());
        assert_eq!(pool.run(|| 7).blocking_recv(), Ok(7));
    }
}
