//! Where a subscription's calls go: one Thrift server, the line of workers that have something for it, and its connections.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hqueue_protocol::endpoint::{EndpointMemory, EndpointOptions};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::health::Health;
use super::options::{Ordering, ProtocolChoice, TransportChoice};
use super::sender::MessageSender;
use super::shared::SubscriptionShared;
use super::window::Window;
use super::worker::SubscriptionWorker;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const DETECT_TIMEOUT: Duration = Duration::from_secs(1);
/// What an endpoint gets that does not say.
pub const DEFAULT_CONNECTIONS: u16 = 1;

/// How an endpoint wants to be called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointSpec {
    /// `host:port`.
    pub address: String,
    /// Names a registration; 0 for a fixed endpoint.
    pub registration: i64,
    /// What it says of itself; auto: what the subscription's options say.
    pub transport: TransportChoice,
    pub protocol: ProtocolChoice,
    /// Connections at the same time: many stock servers serve one at a time. 1 to 16.
    pub connections: u16,
}

/// The partitions that an endpoint takes, sorted; `None`: all.
pub type Takes = Option<Vec<i16>>;

impl EndpointSpec {
    /// An endpoint that the subscription names itself.
    #[must_use]
    pub fn fixed(address: String) -> Self {
        Self {
            address,
            registration: 0,
            transport: TransportChoice::Auto,
            protocol: ProtocolChoice::Auto,
            connections: DEFAULT_CONNECTIONS,
        }
    }
}

/// One endpoint of one subscription. While it has nothing to do it holds its connection and nothing runs.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) spec: EndpointSpec,
    /// That of the spec, for those who keep it.
    pub(super) address: Arc<str>,
    takes: Mutex<Takes>,
    pub(super) shared: Arc<SubscriptionShared>,
    /// Workers with something to send. It has room for every partition of the queue, and a worker stands in it at most once: it
    /// is never full.
    ready: (async_channel::Sender<Arc<SubscriptionWorker>>, async_channel::Receiver<Arc<SubscriptionWorker>>),
    /// The head of the line, once a sender has looked at it.
    head: Mutex<Option<Arc<SubscriptionWorker>>>,
    connections: usize,
    /// Senders that run, at most one for each connection.
    senders: AtomicUsize,
    /// True while a sender runs.
    busy: watch::Sender<bool>,
    /// Connections without a sender.
    callers: Mutex<Vec<Caller>>,
    options: EndpointOptions,
    memory: Arc<EndpointMemory>,
    health: Mutex<Health>,
    /// What may be on its way to it.
    pub(super) window: Arc<Window>,
    pub(super) closed: CancellationToken,
}

impl Endpoint {
    #[must_use]
    pub fn new(spec: EndpointSpec, takes: Takes, shared: Arc<SubscriptionShared>) -> Self {
        let options = EndpointOptions {
            address: spec.address.clone(),
            transport: spec.transport.known().or(shared.options.transport.known()),
            protocol: spec.protocol.known().or(shared.options.protocol.known()),
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: shared.options.call_timeout,
            detect_timeout: DETECT_TIMEOUT.min(shared.options.call_timeout),
        };
        let calls = match shared.options.ordering {
            Ordering::Partition => 1,
            Ordering::None => shared.options.calls as usize,
        };
        let batch = (shared.options.batch_messages, shared.options.batch_bytes as usize);
        let most = (shared.options.window_messages, shared.options.window_bytes as usize);
        Self {
            window: Window::slowly(batch, most),
            connections: usize::from(spec.connections).max(calls),
            address: spec.address.as_str().into(),
            spec,
            takes: Mutex::new(takes),
            closed: shared.scope.stop.child_token(),
            ready: async_channel::bounded(shared.partitions.max(1).unsigned_abs().into()),
            head: Mutex::default(),
            shared,
            senders: AtomicUsize::new(0),
            busy: watch::Sender::new(false),
            callers: Mutex::default(),
            options,
            memory: Arc::default(),
            health: Mutex::default(),
        }
    }

    pub(super) fn takes(&self, partition: i16) -> bool {
        let takes = self.takes.lock().unwrap_or_else(PoisonError::into_inner);
        takes.as_ref().is_none_or(|partitions| partitions.binary_search(&partition).is_ok())
    }

    /// Takes these from now on. True: they are others than before.
    pub(super) fn set_takes(&self, takes: Takes) -> bool {
        let mut known = self.takes.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != takes;
        *known = takes;
        changed
    }

    pub(super) fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of its life already.
    pub(super) fn set_health(&self, health: Health) {
        *self.health() = health;
    }

    /// Does not answer at present.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.health().to_be_asked
    }

    /// It has not answered several times: others are preferred, if they answer.
    #[must_use]
    pub fn is_passed_over(&self) -> bool {
        self.health().is_passed_over()
    }

    /// Puts a worker in the line and sees that somebody serves it.
    pub(super) fn push(endpoint: &Arc<Self>, worker: Arc<SubscriptionWorker>) {
        if let Err(refused) = endpoint.ready.0.try_send(worker) {
            refused.into_inner().rest();
            return;
        }
        if endpoint.start_sender() {
            let sender = MessageSender::new(Arc::clone(endpoint), endpoint.caller());
            endpoint.shared.scope.spawn(sender.run());
        }
    }

    pub(super) fn pop(&self) -> Option<Arc<SubscriptionWorker>> {
        let mut head = self.lock_head();
        head.take().or_else(|| self.ready.1.try_recv().ok())
    }

    /// Who is next. It stays in the line.
    pub(super) fn peek(&self) -> Option<Arc<SubscriptionWorker>> {
        let mut head = self.lock_head();
        if head.is_none() {
            *head = self.ready.1.try_recv().ok();
        }
        head.clone()
    }

    fn lock_head(&self) -> MutexGuard<'_, Option<Arc<SubscriptionWorker>>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_line_empty(&self) -> bool {
        self.line() == 0
    }

    /// How many partitions stand in line.
    pub(super) fn line(&self) -> usize {
        let head = self.lock_head();
        usize::from(head.is_some()) + self.ready.1.len()
    }

    /// There is work for one only, and this sender is not the only one.
    pub(super) fn has_too_many_senders(&self) -> bool {
        self.senders.load(Acquire) > 1 && self.health().is_for_one()
    }

    /// True: the caller is to run a sender.
    fn start_sender(&self) -> bool {
        let most = if self.health().is_for_one() { 1 } else { self.connections };
        let step = |n| (n < most).then_some(n + 1);
        let started = self.senders.fetch_update(AcqRel, Acquire, step).is_ok();
        if started {
            self.busy.send_replace(true);
        }
        started
    }

    /// A sender found the line empty. True: something came meanwhile, it is to go on.
    pub(super) fn end_sender(&self) -> bool {
        if self.senders.fetch_sub(1, AcqRel) == 1 {
            self.busy.send_replace(false);
        }
        !self.is_line_empty() && self.start_sender()
    }

    fn caller(&self) -> Caller {
        let kept = self.callers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Caller::new(self.options.clone(), Arc::clone(&self.memory)))
    }

    pub(super) fn keep_caller(&self, caller: Caller) {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).push(caller);
    }

    /// No more calls. The workers in its line are queued where they belong now.
    pub(super) fn close(&self) {
        self.closed.cancel();
        if self.senders.load(Acquire) == 0 {
            self.hand_over_line();
        }
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn hand_over_line(&self) {
        // First all of it: some may come back here.
        let line: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
        for worker in line {
            worker.begin_turn();
            SubscriptionWorker::end_turn(&worker, true);
        }
    }

    /// Has everybody in the line go where it belongs now, here or elsewhere.
    pub(super) fn route_line_again(&self) {
        let line: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
        for worker in line {
            worker.begin_turn();
            SubscriptionWorker::end_turn(&worker, true);
        }
    }

    /// A call may be under way.
    pub(super) fn is_busy(&self) -> bool {
        *self.busy.borrow()
    }

    /// Waits until no call is under way: each has its own limit.
    pub(super) async fn idle(&self) {
        let mut busy = self.busy.subscribe();
        // An error: nobody can call any more.
        let _ = busy.wait_for(|busy| !busy).await;
    }

    /// Waits until no call is under way, at most so long. False: one still is.
    pub async fn drained(&self, at_most: Duration) -> bool {
        let mut busy = self.busy.subscribe();
        tokio::time::timeout(at_most, busy.wait_for(|busy| !busy)).await.is_ok()
    }
}
