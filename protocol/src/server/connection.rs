//! One connection: reads requests, lets the service answer them, writes the replies in order. One task, and no timer of its own.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

use super::budget::Share;
use super::pace::Pace;
use super::pipeline::{Limits, Pipeline};
use super::reply;
use super::request::{Cut, Head, Input, Request};
use super::service::{Call, Hurry, Reply};
use super::shared::Shared;
use super::watch::{NEVER, Watch};
use crate::pieces::Pieces;
use crate::wire::Foreign;

/// While so many bytes of replies wait to be written, no further call begins.
const OUTPUT_HIGH: usize = 1 << 20;
/// How long a refused peer may take to read why, in milliseconds.
const LINGER_REFUSED_MS: u64 = 3000;
/// How long a peer that still sends when the server stops may take to read its last replies, in milliseconds.
const LINGER_STOPPED_MS: u64 = 1000;
/// How much of what such a peer goes on sending is read away, in bytes.
const LINGER_BYTES: usize = 64 << 20;
/// Room for each of these reads, in bytes.
const LINGER_READ_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    watch: Arc<Watch>,
    socket: TcpStream,
    peer: SocketAddr,
    input: Input,
    /// A request that may not begin yet.
    parked: Option<Request>,
    pipeline: Pipeline,
    output: Pieces,
    share: Share,
    phase: Phase,
    /// The peer sends nothing more.
    peer_ended: bool,
    /// The request, or on a new connection the first byte, that is awaited.
    arriving: Option<Pace>,
    /// Replies that wait for the peer to read them.
    leaving: Option<Pace>,
    /// Since when there is nothing to do, in milliseconds.
    quiet_since: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// No further request is taken. `refused`: the peer shall have time to read the last reply.
    Finishing {
        refused: bool,
    },
    /// Everything is written. Were the socket closed with bytes unread, the peer would lose the last reply.
    Lingering {
        until: u64,
        left: usize,
    },
}

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The peer left.
    Left,
    Failed(io::Error),
    Foreign(Foreign),
    /// It was told why, if it could be.
    Refused,
    OverBudget,
    Idle,
    Late(&'static str),
    Stopped,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, watch: Arc<Watch>, socket: TcpStream, peer: SocketAddr) -> Self {
        let now = shared.clock.now();
        let limits = Limits { calls: shared.options.pipeline, bytes: shared.options.max_request_bytes };
        Self {
            input: Input::new(shared.options.max_request_bytes),
            pipeline: Pipeline::new(limits),
            share: Share::new(shared.budget.clone()),
            shared,
            watch,
            socket,
            peer,
            parked: None,
            output: Pieces::default(),
            phase: Phase::Serving,
            peer_ended: false,
            arriving: Some(Pace::begin(now)),
            leaving: None,
            quiet_since: now,
        }
    }

    /// Serves until the connection ends, and logs how, if anybody should know.
    pub(super) async fn serve(mut self) {
        let end = poll_fn(|cx| self.poll(cx)).await;
        self.report(&end);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.watch.register(cx.waker());
        let now = self.shared.clock.now();
        if self.phase == Phase::Serving && self.shared.is_stopping() {
            self.phase = Phase::Finishing { refused: false };
        }
        match self.advance(cx, now).and_then(|()| self.await_until(now)) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        }
    }

    /// Does everything that can be done now.
    fn advance(&mut self, cx: &mut Context<'_>, now: u64) -> Result<(), End> {
        let mut first = true;
        loop {
            let read = self.takes_input() && self.read(cx, now)?;
            let begun = self.begin_calls(now)?;
            // Who waits for something to happen must hold up nobody, and must not outlive its peer.
            let needed = self.parked.is_some() || self.peer_ended || self.phase != Phase::Serving;
            if (needed && self.pipeline.hurry_all()) || first || begun {
                self.pipeline.poll(cx);
            }
            first = false;
            self.collect(now)?;
            let written = self.write(cx, now)?;
            if !(read || begun || written) {
                break;
            }
        }
        if self.pipeline.is_empty() && self.output.is_empty() {
            self.finish(cx, now)?;
        }
        Ok(())
    }

    fn takes_input(&self) -> bool {
        self.phase == Phase::Serving && !self.peer_ended && self.parked.is_none() && self.output.len() < OUTPUT_HIGH
    }

    /// Reads once; true if something came.
    fn read(&mut self, cx: &mut Context<'_>, now: u64) -> Result<bool, End> {
        // Memory is taken only when there is something to put into it: an idle connection has no buffer.
        if self.socket.poll_read_ready(cx)?.is_pending() {
            self.input.release();
            return Ok(false);
        }
        self.input.buffer.reserve(self.input.room());
        let Poll::Ready(read) = pin!(self.socket.read_buf(&mut self.input.buffer)).poll(cx) else {
            self.input.release();
            return Ok(false);
        };
        let read = read?;
        if read == 0 {
            self.peer_ended = true;
            return Ok(false);
        }
        self.shared.counters.read(read);
        self.arriving.get_or_insert(Pace::begin(now)).advance(now, read);
        if !self.share.hold(self.input.buffer.len() + self.output.len()) {
            self.shared.log_over_budget(self.peer);
            let limit = self.shared.budget.limit();
            let why =
                format!("too many bytes of unfinished requests and unread replies on all connections, the limit is {limit}");
            self.refuse(self.input.head(), Reply::Failed(why));
        }
        Ok(true)
    }

    /// Begins the calls that have arrived and may begin; true if there was one.
    fn begin_calls(&mut self, now: u64) -> Result<bool, End> {
        let mut begun = false;
        while self.phase == Phase::Serving && self.output.len() < OUTPUT_HIGH {
            let request = match self.parked.take() {
                Some(parked) => parked,
                None => match self.input.cut() {
                    Cut::Request(request) => request,
                    Cut::NeedMore => break,
                    Cut::Foreign(foreign) => return Err(End::Foreign(foreign)),
                    Cut::Refused { head, reason } => {
                        self.shared.counters.protocol_error();
                        self.shared.log_protocol_error(self.peer, &reason);
                        self.refuse(head, Reply::BadArguments(reason));
                        break;
                    }
                },
            };
            self.arriving = None;
            let overlaps = self.shared.service.overlaps(&request.head.method);
            if !self.pipeline.may_begin(overlaps, request.args.len()) {
                self.parked = Some(request);
                break;
            }
            self.begin(request, overlaps);
            begun = true;
        }
        self.note_arrival(now);
        Ok(begun)
    }

    /// A request is awaited from its first byte on, the first one from the connection's beginning; none while no input is taken.
    fn note_arrival(&mut self, now: u64) {
        let is_new = self.input.dialect().is_none();
        if !self.takes_input() {
            self.arriving = None;
        } else if !self.input.buffer.is_empty() {
            self.arriving.get_or_insert(Pace::begin(now));
        } else if !is_new {
            self.arriving = None;
        }
    }

    fn begin(&mut self, request: Request, overlaps: bool) {
        let Some(dialect) = self.input.dialect() else { return };
        self.shared.counters.request();
        let Request { head, args } = request;
        let bytes = args.len();
        let hurry = if self.shared.service.waits(&head.method) { Hurry::new() } else { Hurry::default() };
        let call = Call { method: head.method.clone(), protocol: dialect.protocol, args, peer: self.peer, hurry: hurry.clone() };
        let reply = self.shared.service.call(call);
        self.pipeline.begin(head, overlaps, bytes, hurry, reply);
    }

    /// Takes no further request; the reply goes out behind those of the calls under way.
    fn refuse(&mut self, head: Option<Head>, reply: Reply) {
        if let Some(head) = head {
            self.pipeline.answer(head, reply);
        }
        self.phase = Phase::Finishing { refused: true };
        self.input.discard();
        self.share.hold(self.output.len());
    }

    /// Puts ready replies behind what is to be written.
    fn collect(&mut self, now: u64) -> Result<(), End> {
        while let Some((head, reply)) = self.pipeline.pop() {
            self.quiet_since = now;
            if let Some(dialect) = self.input.dialect().filter(|_| !head.oneway) {
                reply::encode(&mut self.output, dialect, &head, reply);
            }
        }
        if self.share.hold(self.input.buffer.len() + self.output.len()) { Ok(()) } else { Err(End::OverBudget) }
    }

    /// Writes while the socket takes something; true if it did.
    fn write(&mut self, cx: &mut Context<'_>, now: u64) -> Result<bool, End> {
        let mut any = false;
        while !self.output.is_empty() {
            let leaving = self.leaving.get_or_insert(Pace::begin(now));
            let Poll::Ready(written) = self.output.poll_write(Pin::new(&mut self.socket), cx)? else { return Ok(any) };
            self.shared.counters.written(written);
            leaving.advance(now, written);
            any = true;
        }
        if self.leaving.take().is_some() {
            self.quiet_since = now;
        }
        Ok(any)
    }

    /// No call is under way and no reply waits.
    fn finish(&mut self, cx: &mut Context<'_>, now: u64) -> Result<(), End> {
        match self.phase {
            Phase::Serving if self.peer_ended => Err(End::Left),
            Phase::Serving => Ok(()),
            Phase::Finishing { refused } => {
                if !refused && self.socket.poll_read_ready(cx)?.is_pending() {
                    return Err(End::Stopped);
                }
                // A socket's shutdown is done at once.
                let _ = Pin::new(&mut self.socket).poll_shutdown(cx)?;
                let linger = if refused { LINGER_REFUSED_MS } else { LINGER_STOPPED_MS };
                self.phase = Phase::Lingering { until: now + linger, left: LINGER_BYTES };
                self.linger(cx)
            }
            Phase::Lingering { .. } => self.linger(cx),
        }
    }

    /// Reads away what the peer still sends, until it closes.
    fn linger(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        while let Phase::Lingering { left, .. } = &mut self.phase {
            self.input.buffer.clear();
            self.input.buffer.reserve(LINGER_READ_BYTES);
            let Poll::Ready(read) = pin!(self.socket.read_buf(&mut self.input.buffer)).poll(cx) else { break };
            let read = read?;
            self.shared.counters.read(read);
            *left = left.saturating_sub(read);
            if read == 0 || *left == 0 {
                return Err(End::Refused);
            }
        }
        Ok(())
    }

    /// Stamps the time at which the sweep has to wake this task; ends if that has passed.
    fn await_until(&self, now: u64) -> Result<(), End> {
        let (deadline, end) = self.deadline();
        if deadline <= now {
            return Err(end);
        }
        self.watch.stamp(deadline);
        Ok(())
    }

    fn deadline(&self) -> (u64, End) {
        if let Phase::Lingering { until, .. } = self.phase {
            return (until, End::Refused);
        }
        let leaving = self.leaving.map(|pace| (pace.deadline(self.shared.reply_pace), End::Late("it does not read its replies")));
        let arriving = self.arriving.map(|pace| {
            let silent = self.input.buffer.is_empty();
            let end = if silent { End::Idle } else { End::Late("its request did not arrive whole in time") };
            (pace.deadline(self.shared.request_pace), end)
        });
        let first = leaving.into_iter().chain(arriving).min_by_key(|(deadline, _)| *deadline);
        first.unwrap_or_else(|| {
            let idle = super::pace::millis(self.shared.options.idle_timeout);
            if self.pipeline.is_empty() { (self.quiet_since.saturating_add(idle), End::Idle) } else { (NEVER, End::Idle) }
        })
    }

    /// Logs the end where anybody should know of it. Probes come and go, and are nobody's business.
    fn report(&self, end: &End) {
        let (shared, peer) = (&self.shared, self.peer);
        match end {
            End::Foreign(foreign) => {
                shared.counters.foreign();
                shared.log_foreign(peer, foreign);
            }
            End::Late(what) => {
                shared.counters.expired();
                shared.log_late(peer, what);
            }
            End::Idle => {
                shared.counters.expired();
                tracing::debug!(%peer, "idle connection closed");
            }
            End::OverBudget => shared.log_over_budget(peer),
            End::Failed(error) => tracing::debug!(%peer, %error, "connection failed"),
            End::Left | End::Refused | End::Stopped => {
                tracing::debug!(%peer, ?end, unread = self.input.buffer.len(), "connection ended");
            }
        }
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}
