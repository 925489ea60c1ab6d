//! Ids under late, lost and doubled writes, by seed: several brokers that take one partition from one another, sessions that end, clocks
//! that differ and jump, processes that go on with what they believed before they stood still.
//!
//! The partition, its record and the decisions about ids are the real ones; coordination, HBase and time are simulated. All durations are
//! a hundredth of the real ones, so that brokers meet in the same milliseconds.
//!
//! What must hold: no row that was acknowledged is ever overwritten, every id that is acknowledged is above those acknowledged before, and a new
//! owner knows of all of them. Each rule about marks and records that is left out must be found out.
//!
//! `HQUEUE_SEED` runs one seed, `HQUEUE_LONG_SCHEDULES` so many.

use std::collections::{BTreeMap, BTreeSet};

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;
use hqueue_storage::marks::Mark;

use super::ids::{Refusal, floor_of, may_give};
use super::partition::{CallSize, Partition};
use super::pending::Chunk;
use super::record::Record;

const BROKERS: usize = 3;
const STEPS: i64 = 3_000;
/// A session ends so long after its broker was heard of last.
const SESSION: i64 = 60;
const AHEAD: i64 = 50;
const SIZE: CallSize = CallSize { rows: 3, bytes: 1000, patience: std::time::Duration::from_secs(60) };

/// Which of the rules is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    None,
    /// The new owner looks at the last row only.
    NoMarks,
    /// The marks of brokers that are dead do not count.
    DeadMarksForgotten,
    /// A partition uses the mark of whatever session there is.
    MarkOfAnySession,
    /// The marks are read before the partition is claimed.
    ReadBeforeTheClaim,
    /// Who finds a record that is not clean writes none of his own before his first row.
    RecordOfAnother,
}

/// What is done to HBase at some time.
#[derive(Clone, Debug)]
enum Write {
    Rows(Vec<(MessageId, u64)>),
    Record(Record, i64),
}

/// What happens later.
#[derive(Debug)]
enum Event {
    Write(Write),
    /// The answer to a write of this broker's chunk.
    Answer {
        broker: usize,
        life: u64,
        chunk: Chunk,
    },
    /// A mark arrives at coordination, sent in a session.
    Reserve {
        broker: usize,
        session: u64,
        below: i64,
    },
    Reserved {
        broker: usize,
        session: u64,
        below: i64,
    },
    /// Ends with the process that began it.
    Acquire {
        broker: usize,
        life: u64,
        step: Step,
    },
}

/// How far a broker is with acquiring the partition.
#[derive(Clone, Debug)]
enum Step {
    /// For the rule that is broken: the marks as they were before.
    Claim {
        highest: Option<i64>,
    },
    Marks,
    Rows {
        highest: i64,
    },
    Hold {
        highest: i64,
        record: Record,
        version: i64,
    },
}

#[derive(Debug, Default)]
struct Broker {
    /// As it believes.
    session: u64,
    mark: Option<Mark>,
    held: Option<Partition>,
    /// Rises when the process starts anew.
    life: u64,
    skew: i64,
    reserving: bool,
    acquiring: bool,
    /// It stands still and then goes on as if nothing had been, until it looks.
    stopped_until: i64,
    /// Values of what it has put, by id.
    values: BTreeMap<MessageId, u64>,
}

struct World {
    random: fastrand::Rng,
    rule: Rule,
    now: i64,
    events: BTreeMap<(i64, u64), Event>,
    count: u64,
    brokers: Vec<Broker>,
    // Coordination.
    sessions: BTreeMap<u64, (usize, i64)>,
    next_session: u64,
    owner: Option<u64>,
    marks: BTreeMap<usize, i64>,
    // HBase.
    rows: BTreeMap<MessageId, u64>,
    record: Option<(Record, i64)>,
    // What must last.
    acknowledged: BTreeMap<MessageId, u64>,
    next_value: u64,
    owners: u64,
    late: u64,
    violations: Vec<String>,
}

impl World {
    fn new(seed: u64, rule: Rule) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let brokers = (0..BROKERS).map(|_| Broker { skew: random.i64(-80..80), ..Broker::default() }).collect();
        Self {
            random,
            rule,
            now: 1_000,
            events: BTreeMap::new(),
            count: 0,
            brokers,
            sessions: BTreeMap::new(),
            next_session: 0,
            owner: None,
            marks: BTreeMap::new(),
            rows: BTreeMap::new(),
            record: None,
            acknowledged: BTreeMap::new(),
            next_value: 0,
            owners: 0,
            late: 0,
            violations: Vec::new(),
        }
    }

    fn at(&mut self, when: i64, event: Event) {
        self.count += 1;
        self.events.insert((when.max(self.now), self.count), event);
    }

    fn soon(&mut self, event: Event) {
        let when = self.now + self.random.i64(1..6);
        self.at(when, event);
    }

    fn run(mut self) -> Self {
        let end = self.now + STEPS;
        while self.now < end && self.violations.is_empty() {
            self.now += 1;
            while let Some(first) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = first.remove();
                self.happen(event);
            }
            self.expire();
            (0..BROKERS).for_each(|n| self.act(n));
        }
        // Whatever is still on its way comes at last.
        for (_, event) in std::mem::take(&mut self.events) {
            if let Event::Write(write) = event {
                self.write(write);
            }
        }
        for (id, value) in &self.acknowledged {
            if self.rows.get(id) != Some(value) {
                self.violations.push(format!("{id} was acknowledged as {value} and is {:?}", self.rows.get(id)));
            }
        }
        self
    }

    fn expire(&mut self) {
        let now = self.now;
        self.sessions.retain(|_, (_, heard)| now - *heard <= SESSION);
        if self.owner.is_some_and(|owner| !self.sessions.contains_key(&owner)) {
            self.owner = None;
        }
    }

    fn act(&mut self, n: usize) {
        if self.brokers[n].stopped_until > self.now {
            return;
        }
        match self.random.u32(0..1000) {
            0..3 => self.restart(n),
            3..6 => self.brokers[n].skew += self.random.i64(-100..100),
            6..10 => {
                self.brokers[n].stopped_until = self.now + self.random.i64(1..150);
                // Going on, it may put before it looks.
                if self.random.bool() {
                    return;
                }
            }
            12..18 => self.release(n),
            10..12 => {
                // Its session ends at once, as one closed by somebody else does.
                let session = self.brokers[n].session;
                self.sessions.remove(&session);
            }
            _ => {}
        }
        // A process that stood still puts first, on what it believed.
        if self.random.u8(0..3) == 0 {
            self.put(n);
        }
        self.look(n);
    }

    /// The process dies and starts anew.
    fn restart(&mut self, n: usize) {
        let skew = self.brokers[n].skew;
        let life = self.brokers[n].life + 1;
        self.brokers[n] = Broker { life, skew, ..Broker::default() };
    }

    /// Hands the partition over in order. Its last word may come late: it does not wait for ever.
    fn release(&mut self, n: usize) {
        let session = self.brokers[n].session;
        let Some(held) = &mut self.brokers[n].held else { return };
        if held.has_pending() || self.owner != Some(session) || session != held.session {
            return;
        }
        let (record, version) = held.record(true);
        self.brokers[n].held = None;
        self.owner = None;
        let comes = if self.random.bool() { 1..4 } else { 20..900 };
        let when = self.now + self.random.i64(comes);
        self.at(when, Event::Write(Write::Record(record, version)));
    }

    /// Heartbeat: finds out about its session, and acquires the partition if it is free.
    fn look(&mut self, n: usize) {
        let session = self.brokers[n].session;
        if let Some(session) = self.sessions.get_mut(&session) {
            session.1 = self.now;
        } else if self.random.u8(0..8) == 0 {
            self.next_session += 1;
            self.sessions.insert(self.next_session, (n, self.now));
            // What it holds stays: it was acquired in another session, and must not be used.
            self.brokers[n].session = self.next_session;
            self.brokers[n].mark = Some(Mark { session: self.next_session, below_ms: 0 });
        }
        if self.owner.is_none() && !self.brokers[n].acquiring && self.random.u8(0..6) == 0 {
            self.brokers[n].acquiring = true;
            let highest = (self.rule == Rule::ReadBeforeTheClaim).then(|| self.highest());
            // Between the two, that rule lets time pass.
            let when = self.now + self.random.i64(1..40);
            let life = self.brokers[n].life;
            self.at(when, Event::Acquire { broker: n, life, step: Step::Claim { highest } });
        }
    }

    fn highest(&self) -> i64 {
        let lives = |broker: &usize| self.sessions.values().any(|(of, _)| of == broker);
        let counted = self.marks.iter().filter(|(broker, _)| self.rule != Rule::DeadMarksForgotten || lives(broker));
        let highest = counted.map(|(_, mark)| *mark).max().unwrap_or(0);
        if self.rule == Rule::NoMarks { 0 } else { highest }
    }

    fn put(&mut self, n: usize) {
        let now = self.now + self.brokers[n].skew;
        let (messages, any_session) = (self.random.usize(1..6), self.rule == Rule::MarkOfAnySession);
        let broker = &mut self.brokers[n];
        let Some(held) = &mut broker.held else { return };
        let session = if any_session { broker.session } else { held.session };
        let reach = held.would_reach(messages, now);
        let needs = match may_give(broker.mark, session, reach) {
            Ok(mark) => mark.below_ms - reach < AHEAD / 3,
            Err(Refusal::NoIds) => true,
            Err(Refusal::NoSession | Refusal::AnotherSession) => return,
        };
        if needs && !std::mem::replace(&mut broker.reserving, true) {
            let (session, below) = (broker.session, reach + AHEAD);
            self.soon(Event::Reserve { broker: n, session, below });
        }
        let broker = &mut self.brokers[n];
        if may_give(broker.mark, session, reach).is_err() {
            return;
        }
        let Some(held) = &mut broker.held else { return };
        let mut batch = PutBatch::default();
        (0..messages).for_each(|_| batch.push(b"t", b"v", &[]));
        let Ok(Some((append, chunks))) = held.append(batch, now, SIZE) else { return };
        held.sent(&chunks);
        for id in append.ids.iter() {
            self.next_value += 1;
            self.brokers[n].values.insert(id, self.next_value);
        }
        chunks.into_iter().for_each(|chunk| self.send(n, chunk));
    }

    /// A call to HBase: carried out soon, late, twice or never.
    fn send(&mut self, n: usize, chunk: Chunk) {
        let values = &self.brokers[n].values;
        let ids = chunk.slice.messages().map(|message| message.unwrap().id);
        let write = Write::Rows(ids.map(|id| (id, values[&id])).collect());
        let life = self.brokers[n].life;
        let done = self.now + self.random.i64(1..10);
        let late = self.now + self.random.i64(20..900);
        match self.random.u32(0..20) {
            0 => {}
            1 => {
                self.late += 1;
                self.at(late, Event::Write(write));
            }
            2 => {
                self.late += 1;
                self.at(done, Event::Write(write.clone()));
                self.at(late, Event::Write(write));
                self.at(done + 2, Event::Answer { broker: n, life, chunk });
            }
            _ => {
                self.at(done, Event::Write(write));
                self.at(done + 2, Event::Answer { broker: n, life, chunk });
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Write(write) => self.write(write),
            Event::Answer { broker, life, chunk } => self.answer(broker, life, &chunk),
            Event::Reserve { broker, session, below } => {
                // Coordination takes it only in a session that lives.
                if self.sessions.contains_key(&session) {
                    let mark = self.marks.entry(broker).or_default();
                    *mark = (*mark).max(below);
                }
                self.soon(Event::Reserved { broker, session, below });
            }
            Event::Reserved { broker, session, below } => {
                let is_done = self.sessions.contains_key(&session) && self.marks.get(&broker).is_some_and(|mark| *mark >= below);
                let broker = &mut self.brokers[broker];
                broker.reserving = false;
                if is_done && broker.session == session {
                    broker.mark = Some(Mark { session, below_ms: below });
                }
            }
            Event::Acquire { broker, life, step } => {
                if self.brokers[broker].life == life {
                    self.acquire(broker, step);
                }
            }
        }
    }

    fn write(&mut self, write: Write) {
        match write {
            Write::Rows(rows) => {
                for (id, value) in rows {
                    if self.acknowledged.get(&id).is_some_and(|known| *known != value) {
                        self.violations.push(format!("{id}, acknowledged, is overwritten"));
                    }
                    self.rows.insert(id, value);
                }
            }
            Write::Record(record, version) => {
                if self.record.as_ref().is_none_or(|(_, known)| version >= *known) {
                    self.record = Some((record, version));
                }
            }
        }
    }

    fn answer(&mut self, n: usize, life: u64, chunk: &Chunk) {
        chunk.of.settle(Ok(()));
        if self.brokers[n].life != life {
            return;
        }
        let Some(held) = &mut self.brokers[n].held else { return };
        let session = held.session;
        for block in held.settle().published {
            // The lease ends before the session can: past it nothing is acknowledged.
            if self.owner != Some(session) || !self.sessions.contains_key(&session) {
                continue;
            }
            for message in block.parts.iter().flat_map(|part| part.messages()) {
                let id = message.unwrap().id;
                let value = self.brokers[n].values[&id];
                if let Some((last, _)) = self.acknowledged.last_key_value().filter(|(last, _)| **last >= id) {
                    self.violations.push(format!("{id} is acknowledged behind {last}"));
                }
                if self.rows.get(&id) != Some(&value) {
                    self.violations.push(format!("{id} is acknowledged, and another row is there"));
                }
                self.acknowledged.insert(id, value);
            }
        }
    }

    fn acquire(&mut self, n: usize, step: Step) {
        let session = self.brokers[n].session;
        let lives = self.sessions.contains_key(&session);
        let next = match step {
            Step::Claim { highest } if lives && self.owner.is_none() => {
                self.owner = Some(session);
                highest.map_or(Step::Marks, |highest| Step::Rows { highest })
            }
            Step::Marks if self.owner == Some(session) => Step::Rows { highest: self.highest() },
            Step::Rows { highest } if self.owner == Some(session) => {
                let (mut record, version) = self.record.clone().unwrap_or((Record { clean: true, ..Record::default() }, 0));
                if !record.clean {
                    let behind = record.last.map_or(MessageId::MIN, MessageId::successor);
                    for id in self.rows.range(behind..).map(|(id, _)| *id) {
                        record.last = Some(id);
                        record.next_number += 1;
                    }
                }
                if let Some((id, _)) = self.acknowledged.last_key_value().filter(|(id, _)| record.last < Some(**id)) {
                    self.violations.push(format!("a new owner begins behind {:?}, and {id} was acknowledged", record.last));
                }
                Step::Hold { highest, record, version }
            }
            Step::Hold { highest, record, version } if self.owner == Some(session) => {
                self.owners += 1;
                let writes_its_own = self.rule != Rule::RecordOfAnother || record.clean;
                let mut held = Partition::new(0, session, record, floor_of(highest), version);
                // As the first write of an owner does.
                if writes_its_own {
                    let (record, version) = held.record(false);
                    self.write(Write::Record(record, version));
                }
                self.brokers[n].held = Some(held);
                self.brokers[n].acquiring = false;
                return;
            }
            _ => {
                self.brokers[n].acquiring = false;
                return;
            }
        };
        let life = self.brokers[n].life;
        self.soon(Event::Acquire { broker: n, life, step: next });
    }
}

fn seeds(quick: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    match (number("HQUEUE_SEED"), number("HQUEUE_LONG_SCHEDULES")) {
        (Some(seed), _) => vec![seed],
        (None, many) => {
            let first = fastrand::u64(0..1 << 40);
            (first..first + many.unwrap_or(quick)).collect()
        }
    }
}

#[test]
fn what_was_acknowledged_is_never_overwritten() {
    let (mut acknowledged, mut owners, mut late) = (0, 0, 0);
    let mut schedules = 0;
    for seed in seeds(300) {
        let world = World::new(seed, Rule::None).run();
        assert!(world.violations.is_empty(), "HQUEUE_SEED={seed}: {:?}", world.violations);
        schedules += 1;
        acknowledged += world.acknowledged.len();
        owners += world.owners;
        late += world.late;
    }
    println!("{schedules} schedules: {acknowledged} messages acknowledged, {owners} owners, {late} late or doubled writes");
    assert!(acknowledged > schedules * 50 && owners > 2 * schedules as u64 && late > schedules as u64, "nothing happens");
}

/// Each of the rules is needed: without it some of these schedules overwrites a message or goes back.
#[test]
fn a_broken_rule_is_found_out() {
    let first = fastrand::u64(0..1 << 40);
    let found: BTreeSet<_> =
        [Rule::NoMarks, Rule::DeadMarksForgotten, Rule::MarkOfAnySession, Rule::ReadBeforeTheClaim, Rule::RecordOfAnother]
            .into_iter()
            .filter(|rule| (first..first + 3000).any(|seed| !World::new(seed, *rule).run().violations.is_empty()))
            .map(|rule| format!("{rule:?}"))
            .collect();
    assert_eq!(found.len(), 5, "from seed {first}: only {found:?} were found out");
}
