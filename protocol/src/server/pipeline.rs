//! Calls of one connection under way: which may begin, and whose reply is next.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::request::Head;
use super::service::{Hurry, Reply, ReplyFuture};

#[derive(Debug)]
pub(super) struct Pipeline {
    calls: VecDeque<Entry>,
    /// Calls without a reply yet.
    waiting: usize,
    /// The one that waits overlaps with nothing.
    exclusive: bool,
    /// Bytes of the arguments of waiting calls.
    bytes: usize,
    /// Waiting calls that may wait long, and were not told to hurry.
    patient: usize,
    limits: Limits,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Calls whose reply was not handed on yet.
    pub(super) calls: usize,
    /// Bytes of the arguments of waiting calls, if there are several.
    pub(super) bytes: usize,
}

struct Entry {
    head: Head,
    bytes: usize,
    hurry: Hurry,
    state: State,
}

enum State {
    Waiting(ReplyFuture),
    Ready(Reply),
}

impl Entry {
    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ready = matches!(self.state, State::Ready(_));
        f.debug_struct("Entry").field("head", &self.head).field("ready", &ready).finish_non_exhaustive()
    }
}

impl Pipeline {
    pub(super) fn new(limits: Limits) -> Self {
        Self { calls: VecDeque::new(), waiting: 0, exclusive: false, bytes: 0, patient: 0, limits }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// A method that does not overlap begins when every earlier reply is ready, and nothing begins before its own reply is.
    pub(super) fn may_begin(&self, overlaps: bool, bytes: usize) -> bool {
        if self.waiting == 0 {
            return self.calls.len() < self.limits.calls;
        }
        let fits = self.calls.len() < self.limits.calls && self.bytes.saturating_add(bytes) <= self.limits.bytes;
        fits && overlaps && !self.exclusive
    }

    /// `hurry`: of a call that may wait long.
    pub(super) fn begin(&mut self, head: Head, overlaps: bool, bytes: usize, hurry: Hurry, reply: ReplyFuture) {
        self.waiting += 1;
        self.patient += usize::from(hurry.is_patient());
        self.exclusive = !overlaps;
        self.bytes += bytes;
        self.calls.push_back(Entry { head, bytes, hurry, state: State::Waiting(reply) });
    }

    /// Adds a reply that no service has to give, behind those of earlier calls.
    pub(super) fn answer(&mut self, head: Head, reply: Reply) {
        self.calls.push_back(Entry { head, bytes: 0, hurry: Hurry::default(), state: State::Ready(reply) });
    }

    /// Lets every waiting call get on.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        self.poll_all(cx);
        // What is ready has to leave: those before it that only wait for something to happen give up.
        while self.patient > 0
            && let Some(last) = self.calls.iter().rposition(|call| matches!(call.state, State::Ready(_)))
            && self.hurry(last)
        {
            self.poll_all(cx);
        }
    }

    /// Has all calls answer that only wait for something to happen. True: they have to be polled.
    pub(super) fn hurry_all(&mut self) -> bool {
        self.patient > 0 && self.hurry(self.calls.len())
    }

    /// The same of those before the call at this place.
    fn hurry(&mut self, end: usize) -> bool {
        let told = self.calls.iter().take(end).filter(|call| call.is_waiting() && call.hurry.tell()).count();
        self.patient = self.patient.saturating_sub(told);
        told > 0
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) {
        if self.waiting == 0 {
            return;
        }
        for call in &mut self.calls {
            let State::Waiting(future) = &mut call.state else { continue };
            if let Poll::Ready(reply) = future.as_mut().poll(cx) {
                call.state = State::Ready(reply);
                self.waiting -= 1;
                self.bytes -= call.bytes;
                self.patient -= usize::from(call.hurry.is_patient());
            }
        }
    }

    /// The next reply in order, if it is ready.
    pub(super) fn pop(&mut self) -> Option<(Head, Reply)> {
        if !matches!(self.calls.front()?.state, State::Ready(_)) {
            return None;
        }
        let call = self.calls.pop_front()?;
        match call.state {
            State::Ready(reply) => Some((call.head, reply)),
            State::Waiting(_) => None,
        }
    }
}
