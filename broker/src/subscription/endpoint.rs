//! Where a subscription's calls go: one Thrift server, the line of workers that have something for it, and its connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hqueue_protocol::endpoint::{EndpointCaller, EndpointMemory, EndpointOptions};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::options::{ProtocolChoice, TransportChoice};
use super::sender::MessageSender;
use super::shared::SubscriptionShared;
use super::worker::SubscriptionWorker;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const DETECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Connections to an endpoint: many stock servers serve one at a time.
const CONNECTIONS: usize = 1;

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
    /// The partitions that it takes, sorted; `None`: all.
    pub partitions: Option<Vec<i16>>,
}

impl EndpointSpec {
    /// An endpoint that the subscription names itself.
    #[must_use]
    pub fn fixed(address: String) -> Self {
        Self { address, registration: 0, transport: TransportChoice::Auto, protocol: ProtocolChoice::Auto, partitions: None }
    }
}

/// One endpoint of one subscription. While it has nothing to do it holds its connection and nothing runs.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) spec: EndpointSpec,
    pub(super) shared: Arc<SubscriptionShared>,
    /// Workers with something to send. It has room for every partition of the queue, and a worker stands in it at most once: it
    /// is never full.
    ready: (async_channel::Sender<Arc<SubscriptionWorker>>, async_channel::Receiver<Arc<SubscriptionWorker>>),
    /// Senders that run, at most `CONNECTIONS`.
    senders: AtomicUsize,
    /// True while a sender runs.
    busy: watch::Sender<bool>,
    /// Connections without a sender.
    callers: Mutex<Vec<EndpointCaller>>,
    options: EndpointOptions,
    memory: Arc<EndpointMemory>,
    pub(super) health: Mutex<Health>,
    pub(super) closed: CancellationToken,
}

/// What is known of an endpoint's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// It answered a call since its last end without an answer: the next such end counts as an attempt.
    pub(super) known_to_live: bool,
    /// It has to answer an empty call before messages are sent.
    pub(super) to_be_asked: bool,
    /// Empty calls without an answer in a row.
    pub(super) unanswered: u32,
}

impl Endpoint {
    #[must_use]
    pub fn new(spec: EndpointSpec, shared: Arc<SubscriptionShared>) -> Self {
        let options = EndpointOptions {
            address: spec.address.clone(),
            transport: spec.transport.known().or(shared.options.transport.known()),
            protocol: spec.protocol.known().or(shared.options.protocol.known()),
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: shared.options.call_timeout,
            detect_timeout: DETECT_TIMEOUT.min(shared.options.call_timeout),
        };
        Self {
            spec,
            closed: shared.scope.stop.child_token(),
            ready: async_channel::bounded(shared.partitions.max(1).unsigned_abs().into()),
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
        self.spec.partitions.as_ref().is_none_or(|partitions| partitions.binary_search(&partition).is_ok())
    }

    /// Does not answer at present.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).to_be_asked
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
        self.ready.1.try_recv().ok()
    }

    pub(super) fn is_line_empty(&self) -> bool {
        self.ready.1.is_empty()
    }

    /// True: the caller is to run a sender.
    fn start_sender(&self) -> bool {
        let step = |n| (n < CONNECTIONS).then_some(n + 1);
        let started = self.senders.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).is_ok();
        if started {
            self.busy.send_replace(true);
        }
        started
    }

    /// A sender found the line empty. True: something came meanwhile, it is to go on.
    pub(super) fn end_sender(&self) -> bool {
        if self.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.busy.send_replace(false);
        }
        !self.is_line_empty() && self.start_sender()
    }

    fn caller(&self) -> EndpointCaller {
        let kept = self.callers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| EndpointCaller::new(self.options.clone(), Arc::clone(&self.memory)))
    }

    pub(super) fn keep_caller(&self, caller: EndpointCaller) {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).push(caller);
    }

    /// No more calls. The workers in its line are queued where they belong now.
    pub(super) fn close(&self) {
        self.closed.cancel();
        if self.senders.load(Ordering::Acquire) == 0 {
            self.hand_over_line();
        }
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn hand_over_line(&self) {
        while let Some(worker) = self.pop() {
            worker.begin_turn();
            SubscriptionWorker::end_turn(&worker, true);
        }
    }

    /// Waits until no call is under way, at most so long. False: one still is.
    pub async fn drained(&self, at_most: Duration) -> bool {
        let mut busy = self.busy.subscribe();
        tokio::time::timeout(at_most, busy.wait_for(|busy| !busy)).await.is_ok()
    }
}
