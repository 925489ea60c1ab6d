//! A queue that may become so large and no larger: what goes to make room, and what is refused.
//!
//! Room is made by the thread that commits, from the oldest block of the log on: what has expired goes first, whatever the policy. That
//! messages are gone is written in the group that takes their place, with one sync for both.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::format::block::{BlockHeader, Kind};
use super::format::control::Control;
use super::format::header::LogPosition;
use super::format::table::Trim;
use super::intake::WaitingPart;
use super::queue::QueueLog;
use super::retire::gone_mark;
use super::scan::{block_at, lone_block_at, next_block};
use super::segment::Segment;
use super::source::Source;
use super::writer::Writer;
use crate::store::{MissingReason, SizeLimit, StoreError, WhenFull};

/// What arrives together is taken in pieces of so much of the limit, so that it does not have to make room for all of it at once.
const PIECES: u64 = 4;

/// At least so much of the limit is dropped at a time.
const DROPPED_AT_ONCE: u64 = 64;

/// The limit of a queue in this store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    bytes: u64,
    spec: SizeLimit,
}

/// What is to go.
#[derive(Debug, Default)]
pub(super) struct Room {
    trims: BTreeMap<i16, Trim>,
    bytes: u64,
    /// Nothing is left before.
    front: LogPosition,
    /// There would be more, if it were not needed.
    is_held: bool,
}

/// Whether a block may go.
enum Verdict {
    Goes(MissingReason),
    Stays,
    /// Only because somebody needs it.
    IsNeeded,
}

impl Room {
    pub(super) fn is_empty(&self) -> bool {
        self.trims.is_empty()
    }

    /// The body of the record that says so.
    pub(super) fn control(&self, floor_epoch: u64) -> Option<Vec<u8>> {
        let trims = || self.trims.iter().map(|(partition, trim)| (*partition, *trim)).collect();
        let control = || Control { floor_epoch: floor_epoch.max(self.front.epoch), trims: trims() };
        (!self.is_empty()).then(|| control().encode())
    }
}

impl QueueLog {
    /// The limit of this queue, in proportion to the partitions that are here.
    pub(super) fn limit(&self) -> Option<Limit> {
        let spec = self.spec.limit?;
        Some(Limit { bytes: spec.share(self.share(), self.spec.partitions), spec })
    }

    /// Commits what fits, making room for it if that is allowed, and refuses the rest.
    pub(super) fn commit_limited(self: &Arc<Self>, writer: &mut Writer, parts: Vec<WaitingPart>, limit: &Limit) {
        let mut piece = Vec::new();
        let mut bytes = 0;
        for part in parts {
            let len = part.slice.bytes.len() as u64;
            if bytes > 0 && bytes + len > limit.bytes / PIECES {
                self.commit_piece(writer, std::mem::take(&mut piece), limit);
                bytes = 0;
            }
            bytes += len;
            piece.push(part);
        }
        if !piece.is_empty() {
            self.commit_piece(writer, piece, limit);
        }
    }

    fn commit_piece(self: &Arc<Self>, writer: &mut Writer, parts: Vec<WaitingPart>, limit: &Limit) {
        // The piece before may have failed.
        if let Some(refusal) = self.refusal() {
            return self.refuse(parts, |_| refusal.clone());
        }
        let (parts, never): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.slice.bytes.len() as u64 <= limit.bytes);
        self.refuse(never, |put_bytes| self.full(put_bytes, limit, false));
        let wanted: u64 = parts.iter().map(|part| part.slice.bytes.len() as u64).sum();
        let found = self.find_room(writer, wanted, limit, limit.spec.when_full == WhenFull::DropOldest);
        let found = found.and_then(|room| {
            let (fitting, rest) = fitting(&parts, self.free_bytes(limit.bytes.saturating_add(room.bytes)));
            if !fitting && limit.spec.when_full == WhenFull::DropOldest {
                // Nothing is dropped for nothing.
                return Ok((self.find_room(writer, wanted, limit, false)?, room.is_held, rest));
            }
            let is_held = room.is_held;
            Ok((room, is_held, rest))
        });
        let (room, is_held, rest) = match found {
            Ok(found) => found,
            Err(error) => {
                let failure = self.settle(Err(self.refused("read", &self.dir, &error))).err();
                return self.refuse(parts, |_| failure.clone().unwrap_or(StoreError::Closed));
            }
        };
        let mut is_refused = rest.into_iter();
        let (refused, taken): (Vec<_>, Vec<_>) = parts.into_iter().partition(|_| is_refused.next() == Some(true));
        self.refuse(refused, |put_bytes| self.full(put_bytes, limit, is_held));
        self.commit_parts(writer, taken, room);
    }

    fn refuse(&self, parts: Vec<WaitingPart>, why: impl Fn(u64) -> StoreError) {
        let bytes = parts.iter().map(|part| part.slice.bytes.len()).sum::<usize>();
        self.intake().waiting_bytes -= bytes;
        for part in parts {
            // Nobody may be waiting any more.
            let _ = part.answer.send(Err(why(part.slice.bytes.len() as u64)));
        }
    }

    fn full(&self, put_bytes: u64, limit: &Limit, keeps_unread: bool) -> StoreError {
        let (queue, used_bytes) = (self.spec.name.clone(), self.live_bytes.load(Relaxed));
        StoreError::QueueFull { queue, put_bytes, used_bytes, limit_bytes: limit.bytes, keeps_unread }
    }

    /// What of so many bytes messages do not take.
    fn free_bytes(&self, of: u64) -> u64 {
        of.saturating_sub(self.live_bytes.load(Relaxed))
    }

    /// Looks for what may go so that `wanted` bytes fit, from the oldest block on.
    fn find_room(&self, writer: &mut Writer, wanted: u64, limit: &Limit, may_drop: bool) -> io::Result<Room> {
        // There may be more than the limit already, if it was larger before.
        let over = self.live_bytes.load(Relaxed).saturating_add(wanted).saturating_sub(limit.bytes);
        let mut room = Room { front: writer.front, ..Room::default() };
        if over == 0 {
            return Ok(room);
        }
        let wanted = if may_drop { over.max(limit.bytes / DROPPED_AT_ONCE) } else { over };
        let now_ms = self.shared.expiry_now_ms();
        let mut segment = None;
        while room.bytes < wanted && self.is_in_segment(&mut segment, &mut room.front)? {
            let Some((segment, source)) = &mut segment else { break };
            let Some(header) = self.block_or_damage(segment, source, &mut room.front)? else { continue };
            match self.verdict(&header, &room, now_ms, limit, may_drop) {
                None => {}
                Some(Verdict::Goes(why)) => self.note(&mut room, &header, why),
                Some(verdict) => {
                    room.is_held = matches!(verdict, Verdict::IsNeeded);
                    break;
                }
            }
            room.front.offset += header.total_len();
        }
        if room.is_empty() {
            writer.front = room.front;
        }
        Ok(room)
    }

    /// Opens the segment at the front, or goes on to the next one. False at the end of the log.
    fn is_in_segment<'a>(&'a self, open: &mut Option<(Arc<Segment>, Source<'a>)>, front: &mut LogPosition) -> io::Result<bool> {
        loop {
            if let Some((segment, source)) = open.as_ref()
                && segment.epoch == front.epoch
                && front.offset < source.end()
            {
                return Ok(true);
            }
            let here = self.segments.get(front.epoch).filter(|segment| front.offset < segment.end());
            let segment = match here {
                Some(segment) => segment,
                None => match self.segments.above(front.epoch).into_iter().next() {
                    Some(next) => next,
                    None => return Ok(false),
                },
            };
            if segment.epoch != front.epoch {
                *front = LogPosition { epoch: segment.epoch, offset: segment.data_start };
            }
            front.offset = front.offset.max(segment.data_start);
            let source = self.source(&segment)?;
            *open = Some((segment, source));
        }
    }

    /// The block at the front. `None` if there is damage, which is passed.
    fn block_or_damage(
        &self,
        segment: &Segment,
        source: &mut Source<'_>,
        front: &mut LogPosition,
    ) -> io::Result<Option<BlockHeader>> {
        // The window at the end of the log grows: it is not worth reading all of it again and again.
        let is_newest = self.segments.newest().is_some_and(|newest| newest.epoch == segment.epoch);
        let find = if is_newest { lone_block_at } else { block_at };
        let found = find(source, &segment.place, front.offset)?;
        if found.is_none() {
            self.report_damage(segment, front.offset, "a part of the log is damaged");
            let end = source.end();
            let behind = next_block(source, &segment.place, front.offset + 1, end)?;
            front.offset = behind.map_or(end, |(offset, _)| offset);
        }
        Ok(found)
    }

    /// May a block go? `None`: it is gone already, or has no messages.
    fn verdict(&self, header: &BlockHeader, room: &Room, now_ms: i64, limit: &Limit, may_drop: bool) -> Option<Verdict> {
        if header.kind == Kind::Control {
            return None;
        }
        let (trimmed, keep_from) = self.partition(header.partition).map(|p| (p.mark.trim.number, p.keep_from))?;
        let trimmed = room.trims.get(&header.partition).map_or(trimmed, |trim| trim.number);
        if header.end_number() <= trimmed {
            return None;
        }
        if self.is_expired(header.arrival_ms, now_ms) {
            return Some(Verdict::Goes(MissingReason::Expired));
        }
        let is_needed = limit.spec.keep_unread && keep_from.is_none_or(|from| header.last >= from);
        Some(match (may_drop, is_needed) {
            (true, false) => Verdict::Goes(MissingReason::Dropped),
            (true, true) => Verdict::IsNeeded,
            (false, _) => Verdict::Stays,
        })
    }

    fn note(&self, room: &mut Room, header: &BlockHeader, why: MissingReason) {
        let before = room.trims.get(&header.partition).copied();
        let before = before.or_else(|| self.partition(header.partition).map(|p| p.mark.trim)).unwrap_or_default();
        let trim = header.trim_behind(why);
        room.bytes += trim.bytes.saturating_sub(before.bytes);
        room.trims.insert(header.partition, trim);
    }

    /// What was found goes, now that it is on the disk.
    pub(super) fn make_room(self: &Arc<Self>, writer: &mut Writer, room: Room) {
        if room.is_empty() {
            return;
        }
        for (number, trim) in room.trims {
            if let Some(mut partition) = self.partition(number) {
                let messages = partition.trim(trim);
                partition.durable_trim = partition.durable_trim.max(trim.number);
                drop(partition);
                match trim.why {
                    MissingReason::Dropped => self.shared.counters.add(|c| &c.dropped_messages, messages),
                    _ => self.shared.counters.add(|c| &c.expired_messages, messages),
                }
            }
        }
        writer.front = writer.front.max(room.front);
        if room.front.epoch > self.floor_epoch() {
            self.give_up_before(writer, room.front.epoch);
        }
    }

    /// Gives back the segments below an epoch, in which nothing is left, and what of them could not be read.
    fn give_up_before(self: &Arc<Self>, writer: &mut Writer, epoch: u64) {
        // Where it cannot be read, the next start takes it from the header that is the first then.
        if let Some(Ok(Some(marks))) = self.segments.get(epoch).map(|first_kept| self.marks_at(&first_kept)) {
            let why = MissingReason::Dropped;
            self.gone(marks.into_iter().map(|(p, mark)| (p, gone_mark(mark, why))).collect(), why);
        }
        self.retire(writer, epoch);
    }
}

/// Which parts fit in so many bytes: whether any does, and for each whether it does not.
fn fitting(parts: &[WaitingPart], mut free_bytes: u64) -> (bool, Vec<bool>) {
    let is_refused = |part: &WaitingPart| {
        let len = part.slice.bytes.len() as u64;
        let fits = len <= free_bytes;
        free_bytes -= if fits { len } else { 0 };
        !fits
    };
    let refused: Vec<bool> = parts.iter().map(is_refused).collect();
    (refused.contains(&false), refused)
}
