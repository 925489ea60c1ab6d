//! Random calls, closes, kills, power cuts and faults, against a list of what was offered.
//!
//! The list knows each element by its number. After every opening the queue must hold an unbroken run of it: it may begin with an element
//! whose poll was not durable yet, and may end behind one whose offer had not returned, never before one that was safe.

use super::*;
use crate::disk::PowerCut;

struct Model {
    /// Everything ever offered, as far as it may be there.
    all: Vec<Vec<u8>>,
    /// Polled up to here; the polls up to `safe_polls` are durable.
    polled: usize,
    safe_polls: usize,
    /// Offers up to here have returned; those up to `safe_offers` survive a power cut.
    offered: usize,
    safe_offers: usize,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { all, polled, safe_polls, offered, safe_offers } = self;
        let all = all.len();
        write!(f, "polled {safe_polls} to {polled}, offered {safe_offers} to {offered}, maybe {all}")
    }
}

impl Model {
    fn element(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        let len = if random.u8(..10) == 0 { random.usize(..30_000) } else { random.usize(..2000) };
        let mut element = (self.all.len() as u64).to_be_bytes().to_vec();
        element.extend((0..len).map(|_| random.u8(..)));
        element
    }

    /// Takes over what an opening has found.
    fn settle(&mut self, queue: &mut FileQueue, how: Option<PowerCut>, context: &str) {
        let len = usize::try_from(queue.len()).unwrap();
        let front = queue.peek().unwrap_or_else(|error| panic!("{context}: {error}")).map(<[u8]>::to_vec);
        let start = match &front {
            Some(front) => usize::try_from(u64::from_be_bytes(front[..8].try_into().unwrap())).unwrap(),
            None => self.all.len().min(self.offered.max(self.polled)),
        };
        assert_eq!(front.is_some(), len > 0, "{context}");
        let end = start + len;
        let kept = if matches!(how, Some(PowerCut::KeepAll)) { self.offered } else { self.safe_offers };
        if front.is_some() {
            assert!((self.safe_polls..=self.polled).contains(&start), "{context}: begins at {start}: {self:?}");
            assert!((kept..=self.all.len()).contains(&end), "{context}: ends at {end}: {self:?}");
            self.all.truncate(end);
        } else {
            assert!(kept <= self.polled, "{context}: nothing is there: {self:?}");
            self.all.truncate(self.polled.max(kept));
        }
        let end = self.all.len();
        let start = if front.is_some() { start } else { end };
        (self.polled, self.safe_polls, self.offered, self.safe_offers) = (start, start, end, end);
    }
}

struct Life<'a> {
    model: &'a mut Model,
    random: &'a mut fastrand::Rng,
    options: &'a FileQueueOptions,
    context: String,
}

impl Life<'_> {
    /// One call. False if the queue is of no more use.
    fn step(&mut self, queue: &mut FileQueue) -> bool {
        match self.random.u8(..20) {
            0..9 => self.offer(queue),
            9..16 => self.poll(queue),
            16 => self.peek(queue),
            17 => self.clear(queue),
            _ => self.sync(queue),
        }
    }

    fn offer(&mut self, queue: &mut FileQueue) -> bool {
        let count = if self.random.u8(..3) == 0 { self.random.usize(..5) } else { 1 };
        let mut batch = Vec::new();
        for _ in 0..count {
            let element = self.model.element(self.random);
            self.model.all.push(element.clone());
            batch.push(element);
        }
        match queue.offer_all(&batch) {
            Ok(()) => {
                self.model.offered = self.model.all.len();
                if self.options.offers == SyncWhen::Each {
                    self.model.safe_offers = self.model.offered;
                }
                true
            }
            // Maybe it is there.
            Err(FileQueueError::Poisoned { .. }) => false,
            Err(error) => {
                self.model.all.truncate(self.model.offered);
                matches!(
                    error,
                    FileQueueError::NoSpace { .. } | FileQueueError::BatchTooLarge { .. } | FileQueueError::Full { .. }
                )
            }
        }
    }

    fn poll(&mut self, queue: &mut FileQueue) -> bool {
        match queue.poll() {
            Ok(Some(element)) => {
                assert!(self.model.polled < self.model.offered, "{}: more than was offered", self.context);
                assert!(element == self.model.all[self.model.polled], "{}: element {}", self.context, self.model.polled);
                self.model.polled += 1;
                let failed = queue.reader.opened().shared.state().has_commit_failed;
                if self.options.polls == SyncWhen::Each && !failed && self.model.polled <= self.model.safe_offers {
                    self.model.safe_polls = self.model.polled;
                }
                true
            }
            Ok(None) => {
                assert_eq!(self.model.polled, self.model.offered, "{}: elements are missing", self.context);
                true
            }
            Err(error) => self.expect_io(&error),
        }
    }

    fn peek(&mut self, queue: &mut FileQueue) -> bool {
        let wanted = (self.model.polled < self.model.offered).then(|| self.model.all[self.model.polled].clone());
        match queue.peek() {
            Ok(found) => assert!(found == wanted.as_deref(), "{}: peek", self.context),
            Err(error) => return self.expect_io(&error),
        }
        assert_eq!(queue.len(), (self.model.offered - self.model.polled) as u64, "{}", self.context);
        true
    }

    fn clear(&mut self, queue: &mut FileQueue) -> bool {
        let cleared = queue.clear();
        self.model.polled = self.model.offered;
        match cleared {
            Ok(()) => {
                self.model.safe_offers = self.model.offered;
                self.model.safe_polls = self.model.offered;
                true
            }
            Err(error) => matches!(error, FileQueueError::Poisoned { .. }) || self.expect_io(&error),
        }
    }

    fn sync(&mut self, queue: &mut FileQueue) -> bool {
        if queue.sync().is_err() {
            return false;
        }
        (self.model.safe_offers, self.model.safe_polls) = (self.model.offered, self.model.polled);
        true
    }

    fn expect_io(&self, error: &FileQueueError) -> bool {
        assert!(matches!(error, FileQueueError::Io { .. }), "{}: {error}", self.context);
        false
    }
}

fn random_options(random: &mut fastrand::Rng) -> FileQueueOptions {
    let mut when = |often: u8| if random.u8(..4) < often { SyncWhen::Each } else { SyncWhen::Within(Duration::from_millis(1)) };
    let (offers, polls) = (when(3), when(2));
    FileQueueOptions { offers, polls, max_bytes: random.bool().then(|| (64 << 10) * random.u64(2..6)), ..strict() }
}

fn run(seed: u64, with_faults: bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut disk = SimulatedDisk::new();
    let mut model = Model { all: Vec::new(), polled: 0, safe_polls: 0, offered: 0, safe_offers: 0 };
    // What was found by a process that could not go on is only what the machine's memory showed.
    let mut how = None;
    for life in 0..8 {
        let options = random_options(&mut random);
        let context = format!("seed {seed}, life {life}, {options:?}");
        if random.bool() {
            disk.cut_power_after(Some(random.u64(..60)));
        }
        if with_faults {
            disk.fail_syncs(random.u64(..40), random.u64(..2));
            disk.fail_writes(random.u64(..60), random.u64(..2));
            disk.set_free_bytes(random.bool().then(|| random.u64(..200_000)));
        }
        let opened = open_with(&disk, options.clone());
        let ended = random.u8(..3);
        let was_opened = opened.is_ok();
        if let Ok(mut queue) = opened {
            model.settle(&mut queue, how, &context);
            let mut life = Life { model: &mut model, random: &mut random, options: &options, context };
            let mut steps = life.random.usize(..80);
            while steps > 0 && life.step(&mut queue) {
                steps -= 1;
            }
            if ended == 0 && queue.close().is_ok() {
                (model.safe_offers, model.safe_polls) = (model.offered, model.polled);
            }
        }
        let cut = if ended == 1 { PowerCut::KeepAll } else { PowerCut::Random(random.u64(..)) };
        // Once there was a power cut that no opening has looked after, a kill adds nothing.
        let is_looked_after = was_opened || how.is_none();
        if cut != PowerCut::KeepAll || is_looked_after {
            how = Some(cut);
        }
        disk = disk.power_cut(cut);
    }
    let mut queue = open(&disk);
    model.settle(&mut queue, how, &format!("seed {seed}, the end"));
    let found: Vec<Vec<u8>> = std::iter::from_fn(|| queue.poll().unwrap()).collect();
    assert!(found == model.all[model.polled..], "seed {seed}: the end");
}

fn seeds() -> impl Iterator<Item = u64> {
    let long = std::env::var_os("HQUEUE_LONG_TESTS").is_some();
    let given = std::env::var("HQUEUE_SEED").ok().and_then(|seed| seed.parse().ok());
    let base: u64 = given.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {base}");
    let count = if given.is_some() {
        1
    } else if long {
        5000
    } else {
        150
    };
    (0..count).map(move |n| base.wrapping_add(n))
}

#[test]
fn any_calls_and_power_cuts_leave_what_was_promised() {
    seeds().for_each(|seed| run(seed, false));
}

#[test]
fn with_a_failing_disk_too() {
    seeds().for_each(|seed| run(seed, true));
}
