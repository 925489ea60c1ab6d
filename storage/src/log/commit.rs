//! The commit: what has gathered is written in one go, synced once, then visible and answered.
//!
//! One thread of the pool is at work on a log at a time (`Intake::committing`), so that batches gather while it syncs. Everything here
//! happens on that thread.

use std::sync::Arc;

use super::format::block::FIXED_LEN;
use super::format::control::Control;
use super::group::{Contribution, Group, Standing, contributions};
use super::intake::{Command, Status, Waiting, WaitingPart};
use super::queue::QueueLog;
use super::retention::Room;
use super::writer::Writer;
use crate::store::StoreError;

/// A clock that steps back by no more is waited for: what arrives meanwhile counts as arriving when it stepped. Milliseconds.
const SMALL_STEP_MS: i64 = 60_000;

/// Why a group is not on the disk.
#[derive(Debug)]
pub(super) enum Failure {
    /// It is as if nothing had been tried.
    Refused(StoreError),
    /// What is on the disk is not certain.
    Uncertain(String),
}

impl QueueLog {
    /// Has a thread work on what waits, unless one is about to anyway. Called with the intake unlocked after `committing` was set.
    pub(super) fn start_commit(self: &Arc<Self>) {
        let log = Arc::clone(self);
        if !self.shared.io.submit(move || log.commit_waiting()) {
            self.end_commits(&StoreError::Closed);
        }
    }

    fn commit_waiting(self: Arc<Self>) {
        loop {
            let waiting = {
                let mut intake = self.intake();
                if intake.waiting.is_empty() {
                    intake.committing = false;
                    self.idle.notify_all();
                    return;
                }
                std::mem::take(&mut intake.waiting)
            };
            self.commit(waiting);
            if self.shared.io.has_waiting() {
                // Others have waited longer.
                self.start_commit();
                return;
            }
        }
    }

    fn commit(self: &Arc<Self>, waiting: Waiting) {
        if let Some(refusal) = self.refusal() {
            let bytes = waiting.parts.iter().map(|part| part.slice.bytes.len()).sum::<usize>();
            self.intake().waiting_bytes -= bytes;
            waiting.refuse(&refusal);
            return;
        }
        let mut writer = self.writer();
        match self.limit() {
            None => self.commit_parts(&mut writer, waiting.parts, Room::default()),
            Some(limit) => self.commit_limited(&mut writer, waiting.parts, &limit),
        }
        for (command, answer) in waiting.commands {
            let outcome = match self.refusal() {
                Some(refusal) => Err(refusal),
                None => self.settle(self.obey(&mut writer, &command)),
            };
            // Nobody may be waiting any more.
            let _ = answer.send(outcome);
        }
        if !writer.retired.is_empty() {
            self.reuse_retired(&mut writer);
        }
    }

    /// Writes what was taken in one group, which also makes room as `room` says.
    pub(super) fn commit_parts(self: &Arc<Self>, writer: &mut Writer, parts: Vec<WaitingPart>, room: Room) {
        if parts.is_empty() && room.is_empty() {
            return;
        }
        let bytes = parts.iter().map(|part| part.slice.bytes.len()).sum::<usize>();
        let (made, answers) = contributions(parts);
        let outcome = self.settle(self.write_messages(writer, made, room));
        self.intake().waiting_bytes -= bytes;
        answers.into_iter().for_each(|answer| drop(answer.send(outcome.clone())));
    }

    /// What is answered instead of writing, if the log is poisoned.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        match &self.intake().status {
            Status::Poisoned(reason) => Some(StoreError::Poisoned { queue: self.spec.name.clone(), reason: reason.clone() }),
            Status::Open | Status::Closed => None,
        }
    }

    pub(super) fn settle(&self, outcome: Result<(), Failure>) -> Result<(), StoreError> {
        match outcome {
            Ok(()) => Ok(()),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Uncertain(reason)) => {
                tracing::error!(queue = self.spec.name, reason, "the log refuses writes until it is reopened");
                self.intake().status = Status::Poisoned(reason.clone());
                Err(StoreError::Poisoned { queue: self.spec.name.clone(), reason })
            }
        }
    }

    /// Lets nobody wait for what no thread will do.
    fn end_commits(&self, error: &StoreError) {
        let waiting = {
            let mut intake = self.intake();
            intake.committing = false;
            intake.waiting_bytes = 0;
            self.idle.notify_all();
            std::mem::take(&mut intake.waiting)
        };
        waiting.refuse(error);
    }

    fn write_messages(self: &Arc<Self>, writer: &mut Writer, made: Vec<Contribution>, room: Room) -> Result<(), Failure> {
        let control = room.control(self.floor_epoch());
        let control_len = control.as_ref().map_or(0, |body| (FIXED_LEN + body.len()) as u64);
        let len: u64 = control_len + made.iter().map(Contribution::disk_len).sum::<u64>();
        let start = self.room_for(writer, len)?;
        let (arrival_ms, stepped) = self.arrival(writer);
        let mut group = Group::default();
        let number = writer.next_group();
        let place = self.place(start.epoch);
        if let Some(body) = control {
            group.add_control(&place, start, body, arrival_ms, number);
        }
        let mut standing: Option<(i16, Standing)> = None;
        let (mut messages, mut bytes) = (0, 0);
        for contribution in made {
            let partition = contribution.partition;
            let stands = match standing {
                Some((p, stands)) if p == partition => stands,
                _ => self.standing(partition),
            };
            messages += u64::from(contribution.count());
            bytes += contribution.byte_len() as u64;
            let behind = Standing {
                number: stands.number + u64::from(contribution.count()),
                bytes_before: stands.bytes_before + contribution.byte_len() as u64,
            };
            standing = Some((partition, behind));
            group.add(&place, start, contribution, stands, arrival_ms, number);
        }
        let start = self.write_group(writer, &mut group, start)?;
        if !room.is_empty() {
            // Gone is gone, over a power cut too.
            self.sync_now(writer)?;
        }
        if stepped {
            self.clock_stepped(start);
        }
        writer.last_arrival_ms = arrival_ms;
        writer.keeps_spares = true;
        self.make_room(writer, room);
        self.publish(writer, &group, arrival_ms);
        let counters = &self.shared.counters;
        counters.add(|c| &c.appended_messages, messages);
        counters.add(|c| &c.appended_bytes, bytes);
        counters.add(|c| &c.commits, 1);
        Ok(())
    }

    fn standing(&self, partition: i16) -> Standing {
        let mark = self.partition(partition).map(|p| p.mark).unwrap_or_default();
        Standing { number: mark.committed.next_number, bytes_before: mark.bytes }
    }

    /// When the group arrives, and whether the clock has stepped back since the one before.
    fn arrival(&self, writer: &Writer) -> (i64, bool) {
        let now_ms = self.shared.clock.now_ms();
        let back_ms = writer.last_arrival_ms.saturating_sub(now_ms);
        match back_ms {
            ..=0 => (now_ms, false),
            1..=SMALL_STEP_MS => (writer.last_arrival_ms, false),
            _ => (now_ms, true),
        }
    }

    /// Makes a group visible.
    fn publish(self: &Arc<Self>, writer: &Writer, group: &Group, arrival_ms: i64) {
        let Some(active) = &writer.active else { return };
        // First what readers need to find the blocks, then the word that there are some.
        if let Some(index) = &mut *active.segment.index_mut() {
            group.note_in(index);
        }
        active.segment.set_last_arrival_ms(arrival_ms);
        active.segment.set_end(active.end);
        for (block, at) in group.blocks() {
            if let Some(mut partition) = self.partition(block.partition) {
                partition.publish(Arc::clone(block), at);
            }
        }
        self.shared.tails.published(&Arc::downgrade(self), group.blocks().map(|(block, _)| &**block));
        let listener = self.listener();
        let mut told = None;
        for (block, _) in group.blocks() {
            if told.replace(block.partition) != Some(block.partition) {
                listener.committed(block.partition);
            }
        }
    }

    fn obey(self: &Arc<Self>, writer: &mut Writer, command: &Command) -> Result<(), Failure> {
        match command {
            Command::Truncate => self.truncate_now(writer),
            Command::KeepTrims => self.keep_trims(writer, self.floor_epoch()),
            Command::DropBelow(epoch) => self.drop_below(writer, *epoch),
            Command::DropAll => self.drop_all(writer),
            Command::GiveBack => {
                self.reuse_retired(writer);
                Ok(())
            }
        }
    }

    /// Writes a control record with the trims that are not on the disk yet.
    pub(super) fn keep_trims(self: &Arc<Self>, writer: &mut Writer, floor_epoch: u64) -> Result<(), Failure> {
        let trims = self.unkept_trims();
        if trims.is_empty() && floor_epoch == self.floor_epoch() {
            return Ok(());
        }
        let control = Control { floor_epoch, trims };
        let body = control.encode();
        let start = self.room_for(writer, (FIXED_LEN + body.len()) as u64)?;
        let mut group = Group::default();
        let number = writer.next_group();
        group.add_control(&self.place(start.epoch), start, body, writer.last_arrival_ms, number);
        self.write_group(writer, &mut group, start)?;
        self.sync_now(writer)?;
        if let Some(active) = &writer.active {
            active.segment.set_end(active.end);
        }
        for (partition, trim) in control.trims {
            if let Some(mut partition) = self.partition(partition) {
                partition.durable_trim = partition.durable_trim.max(trim.number);
            }
        }
        Ok(())
    }
}
