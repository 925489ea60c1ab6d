//! Where the messages of one subscriber arrive, whatever brings them: each is checked, and its age noted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::clock::Clock;
use super::counter::Counter;
use super::latency::Latencies;
use crate::failure::Outcome;
use crate::messages::{Ledger, Stamp};

/// What a subscriber does with what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Take,
    /// It is read, and not answered before the behaviour changes.
    Hold,
    /// It is answered so much later.
    Slow(Duration),
}

/// Of which messages the age is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ages {
    /// The first of what comes together, so that noting costs little beside what is measured.
    First,
    Every,
}

#[derive(Debug)]
pub struct Intake {
    ledger: Ledger,
    clock: Clock,
    ages_of: Ages,
    behaviour: watch::Sender<Behaviour>,
    /// Messages that were taken, repetitions not counted.
    taken: Counter,
    /// Pushes with messages that have arrived, answered or not.
    arrived: Counter,
    /// When the last answer was written.
    answered_ns: AtomicU64,
    /// From the stamp to the arrival.
    ages: Mutex<Latencies>,
}

impl Intake {
    #[must_use]
    pub fn new(ledger: Ledger, clock: Clock, ages_of: Ages) -> Self {
        Self {
            ledger,
            clock,
            ages_of,
            behaviour: watch::Sender::new(Behaviour::Take),
            taken: Counter::default(),
            arrived: Counter::default(),
            answered_ns: AtomicU64::new(0),
            ages: Mutex::default(),
        }
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.behaviour.send_replace(behaviour);
    }

    /// Messages that were taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Pushes with messages that have arrived so far.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.arrived.get()
    }

    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.ledger.repeated()
    }

    /// When the last answer was written, by the driver's clock.
    #[must_use]
    pub fn answered_ns(&self) -> u64 {
        self.answered_ns.load(Ordering::Acquire)
    }

    /// The ages that were noted since this was asked last.
    #[must_use]
    pub fn ages(&self) -> Latencies {
        std::mem::take(&mut self.ages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Counts what has just come, and waits until this subscriber would answer it. Cancel safe, but counts again.
    pub async fn welcome(&self) {
        self.arrived.add(1);
        let mut behaviour = self.behaviour.subscribe();
        let now = *behaviour.borrow_and_update();
        match now {
            Behaviour::Take => {}
            Behaviour::Slow(time) => tokio::time::sleep(time).await,
            // It fails only without a sender, and this holds one.
            Behaviour::Hold => drop(behaviour.wait_for(|now| *now != Behaviour::Hold).await),
        }
    }

    /// Notes all values that came together; returns how many are new. The values of one partition must not be noted by two threads at once.
    pub fn take<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>, arrival_ns: u64) -> u64 {
        let (mut new, mut first) = (0, true);
        let mut ages = (self.ages_of == Ages::Every).then(|| self.ages.lock().unwrap_or_else(PoisonError::into_inner));
        for value in values {
            let Some(stamp) = Stamp::read(value) else {
                self.fault("a value that nobody put".to_owned());
                continue;
            };
            new += u64::from(self.ledger.note(stamp));
            let age = arrival_ns.saturating_sub(stamp.sent_ns);
            match &mut ages {
                Some(ages) => ages.note(age),
                None if first => self.ages.lock().unwrap_or_else(PoisonError::into_inner).note(age),
                None => {}
            }
            first = false;
        }
        new
    }

    /// So many new messages were acknowledged just now.
    pub fn acknowledged(&self, new: u64) {
        self.answered_ns.fetch_max(self.clock.now_ns(), Ordering::AcqRel);
        if new > 0 {
            self.taken.add(new);
        }
    }

    /// Keeps the first thing that went wrong: there will be no figure.
    pub fn fault(&self, what: String) {
        self.ledger.fault(what);
    }

    /// Waits until so many messages in all were taken and answered. An error if one was lost or out of order, or if nothing comes
    /// for `patience`.
    pub async fn wait_taken(&self, messages: u64, patience: Duration) -> Outcome<()> {
        self.taken.wait(messages, "messages", patience, || self.ledger.check()).await?;
        self.ledger.check()
    }

    /// Waits until so many pushes in all have arrived.
    pub async fn wait_arrived(&self, pushes: u64, patience: Duration) -> Outcome<()> {
        self.arrived.wait(pushes, "pushes", patience, || self.ledger.check()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(numbers: &[u64]) -> Vec<Vec<u8>> {
        let stamp = |number: &u64| Stamp { producer: 0, partition: 0, number: *number, sent_ns: 0 };
        numbers.iter().map(|number| stamp(number).to_bytes().to_vec()).collect()
    }

    async fn outcome(numbers: &[u64], wanted: u64) -> Outcome<()> {
        let intake = Intake::new(Ledger::new(1, 1), Clock::start(), Ages::Every);
        let new = intake.take(values(numbers).iter().map(Vec::as_slice), 0);
        intake.acknowledged(new);
        intake.wait_taken(wanted, Duration::from_millis(20)).await
    }

    #[tokio::test]
    async fn what_came_in_order_counts_and_repetitions_do_not() {
        outcome(&[0, 1, 1, 2], 3).await.unwrap();
    }

    #[tokio::test]
    async fn a_lost_a_late_and_a_foreign_message_leave_no_figure() {
        for (numbers, reason) in [(vec![0, 1], "2 of 3 messages came"), (vec![0, 2, 1], "message 2 came where 1 was due")] {
            let failure = outcome(&numbers, 3).await.unwrap_err().to_string();
            assert!(failure.contains(reason), "{failure}");
        }
        let intake = Intake::new(Ledger::new(1, 1), Clock::start(), Ages::First);
        intake.take([b"what is this".as_slice()], 0);
        assert!(intake.wait_taken(0, Duration::ZERO).await.unwrap_err().to_string().contains("nobody put"));
    }
}
