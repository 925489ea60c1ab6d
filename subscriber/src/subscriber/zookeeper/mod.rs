//! A subscriber registers itself: with nodes of its own session, in every partition that it wants.
//!
//! Level-triggered: one function reads how everything stands, and makes it as it should be; it runs again whenever something that it has
//! read changes, in every new session, and after a failure. So nodes that vanish, that others change or that an earlier session has left
//! are all the same case.

mod nodes;
mod partition;
mod payload;
mod prepare;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{CoordinationError, Ended, SharedCoordinator, Watched};
use hqueue_protocol::client::{ClientError, RpcClient};
use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::rpc::{Unsubscribe, UnsubscribeArgs};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::nodes::Sessions;
use self::partition::View;
use super::subscription::Subscription;
use crate::cluster::{Cluster, Turn, paths};
use crate::error::{Error, ErrorCode};

/// Partitions that are written at once.
const CONCURRENT: usize = 40;
/// At the start, what may pass by itself is waited for so long.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// Changes that come together are looked at together: between two looks lies so long, or what the last one took twice, if that is more.
/// What we have just written is then seen, and not taken for missing.
const SETTLE: Duration = Duration::from_millis(100);
const MAX_SETTLE: Duration = Duration::from_secs(2);
/// The longest wait between two tries.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// For a broker's answer to what it has in memory; then another is asked.
const ANSWER: Duration = Duration::from_secs(2);
/// At a stop, removing the nodes may take so long.
const REMOVAL: Duration = Duration::from_secs(5);
/// A broker answers `unsubscribe` when the calls in flight are done, after 10 s at most.
const LEAVE: Duration = Duration::from_secs(12);

/// The registration of one endpoint of a subscription.
#[derive(Debug)]
pub(super) struct SubscriberZooKeeper {
    cluster: Arc<Cluster>,
    client: RpcClient,
    queue: String,
    subscription: Subscription,
    turn: Turn,
    /// Names this registration to brokers.
    registration: i64,
    address: String,
    address_payload: Vec<u8>,
    topics_payload: Vec<u8>,
    /// Those that are wanted; none before they are known.
    partitions: Vec<i16>,
    sessions: Sessions,
    /// With which suffixes nodes of ours may stand, by partition.
    placed: BTreeMap<i16, BTreeSet<String>>,
    watched: Watched,
    /// It was registered before.
    began: bool,
    /// Between a change and the next look.
    settle: Duration,
}

impl SubscriberZooKeeper {
    pub(super) fn new(
        cluster: Arc<Cluster>,
        client: RpcClient,
        queue: String,
        subscription: Subscription,
        address: String,
    ) -> Self {
        let registration = fastrand::i64(1..);
        Self {
            turn: cluster.turn(&queue, &subscription.name),
            watched: Watched::new(Arc::clone(cluster.coordinator())),
            address_payload: payload::address(&address, registration),
            topics_payload: payload::topics(&subscription.topics),
            partitions: Vec::new(),
            sessions: Sessions::default(),
            placed: BTreeMap::new(),
            began: false,
            settle: SETTLE,
            cluster,
            client,
            queue,
            subscription,
            registration,
            address,
        }
    }

    /// Registers and says how that went; keeps it so until `leave`, then takes it back.
    pub(super) async fn run(mut self, ready: oneshot::Sender<Result<(), Error>>, leave: CancellationToken) {
        let begun = self.begin(&leave).await;
        let is_begun = begun.is_ok();
        self.began = is_begun;
        // Nobody may wait any more: then `leave` is said.
        let _ = ready.send(begun);
        if is_begun {
            self.keep(&leave).await;
        }
        self.take_back(is_begun).await;
    }

    /// Looks until all is registered. Of several brokers each is asked before one that could not help is an answer.
    async fn begin(&mut self, leave: &CancellationToken) -> Result<(), Error> {
        let deadline = Instant::now() + START_PATIENCE;
        for failures in 1.. {
            let Err(error) = self.look(leave).await else { break };
            let elsewhere = error.may_be_done_elsewhere() && failures < self.client.addresses();
            if !(elsewhere || error.is_retryable()) || Instant::now() >= deadline || leave.is_cancelled() {
                return Err(error);
            }
            tracing::debug!(queue = self.queue, subscriber = self.subscription.name, %error, elsewhere, "tried again");
            self.leave_broker_after(&error).await;
            if elsewhere {
                continue;
            }
            tokio::select! {
                () = sleep(wait_after(u32::try_from(failures).unwrap_or(u32::MAX))) => {}
                _ = self.watched.changed() => {}
                () = leave.cancelled() => {}
            }
        }
        self.say_registered();
        Ok(())
    }

    /// The next try is another broker's, if it was this one that did not help.
    async fn leave_broker_after(&self, error: &Error) {
        if error.may_be_done_elsewhere() {
            self.client.leave_broker().await;
        }
    }

    async fn keep(&mut self, leave: &CancellationToken) {
        let (mut session, mut failures, mut said) = (Some(self.sessions.now), 0, None);
        loop {
            let again = async {
                match failures {
                    0 => std::future::pending().await,
                    failures => sleep(wait_after(failures)).await,
                }
            };
            tokio::select! {
                biased;
                () = leave.cancelled() => return,
                () = self.cluster.other_session(session) => {}
                () = again => {}
                changed = self.watched.changed() => match changed {
                    Ok(()) => sleep(self.settle).await,
                    Err(Ended) => return,
                },
            }
            session = self.cluster.session();
            let looked = self.look(leave).await;
            if leave.is_cancelled() {
                return;
            }
            failures = if looked.is_ok() { 0 } else { failures + 1 };
            if let Err(error) = &looked {
                self.leave_broker_after(error).await;
            }
            self.say(looked.err().map(|error| error.to_string()), &mut said);
        }
    }

    /// Says what is wrong once, again when it changes, and when it is over.
    fn say(&self, trouble: Option<String>, said: &mut Option<String>) {
        match &trouble {
            Some(reason) if trouble != *said => {
                let (queue, subscriber) = (&self.queue, &self.subscription.name);
                tracing::warn!(queue, subscriber, reason, "not registered, or not everywhere; trying on");
            }
            None if said.is_some() => self.say_registered(),
            _ => {}
        }
        *said = trouble;
    }

    fn say_registered(&self) {
        let session = format!("{:#x}", self.sessions.now);
        let (queue, subscriber, partitions) = (&self.queue, &self.subscription.name, self.partitions.len());
        tracing::info!(queue, subscriber, address = self.address, session, partitions, "registered in ZooKeeper");
    }

    /// Looks at everything once and makes it so.
    async fn look(&mut self, leave: &CancellationToken) -> Result<(), Error> {
        let session = self.cluster.session().ok_or_else(|| {
            let place = self.cluster.place();
            Error::Unreachable(format!("there is no session with ZooKeeper now ({place})"))
        })?;
        let since = Instant::now();
        self.sessions.begin(session);
        self.watched.begin();
        let looked = self.look_in_session(leave).await;
        self.watched.end();
        self.settle = (since.elapsed() * 2).clamp(SETTLE, MAX_SETTLE);
        looked
    }

    async fn look_in_session(&mut self, leave: &CancellationToken) -> Result<(), Error> {
        // Wakes when a queue that was dropped is made anew.
        self.watched.expect_node(&paths::queue(&self.queue));
        let options = self.watched.node(&paths::options(&self.queue, &self.subscription.name)).await.map_err(closed)?;
        match &options {
            Some(options) => self.check_options(&options.payload)?,
            None => self.partitions.clear(),
        }
        if self.partitions.is_empty() {
            // The nodes are written to their end; a broker's answer is not waited for.
            let prepared = leave.run_until_cancelled(self.prepare()).await;
            self.partitions = prepared.ok_or_else(|| Error::Unreachable("it is stopping".to_owned()))??;
        }
        let views = self.view_partitions().await.map_err(closed)?;
        self.write_partitions(views).await
    }

    fn check_options(&self, options: &[u8]) -> Result<(), Error> {
        let fixed = payload::fixed_endpoints(options);
        if fixed.is_empty() {
            return Ok(());
        }
        let (name, queue, fixed) = (&self.subscription.name, &self.queue, fixed.join(", "));
        let message = format!("subscriber {name} of queue {queue} has fixed endpoints ({fixed}): delete it first");
        Err(Error::Refused { code: ErrorCode::Exists, message })
    }

    async fn view_partitions(&mut self) -> Result<Vec<View>, Ended> {
        let own = self.turn.suffix(self.sessions.now);
        let views: Vec<(View, bool)> = self
            .partitions
            .iter()
            .map(|p| {
                let is_there = self.placed.get(p).is_some_and(|placed| placed.contains(&own));
                (View::new(&self.queue, *p, &self.subscription.name, &own), is_there)
            })
            .collect();
        views.iter().for_each(|(view, own)| view.expect(&mut self.watched, *own));
        let mut seen = Vec::with_capacity(views.len());
        for (view, own) in views {
            seen.push(view.read(&mut self.watched, own).await?);
        }
        Ok(seen)
    }

    async fn write_partitions(&mut self, views: Vec<View>) -> Result<(), Error> {
        let of: &Self = self;
        let write = |view: View| async move {
            let before = of.placed.get(&view.partition).cloned().unwrap_or_default();
            (view.partition, view.write(of, before).await)
        };
        let tries: Vec<_> = views.into_iter().map(write).collect();
        let all: Vec<_> = stream::iter(tries).buffer_unordered(CONCURRENT).collect().await;
        let (mut failed, mut first) = (0, None);
        let count = all.len();
        for (partition, (placed, outcome)) in all {
            self.placed.insert(partition, placed);
            if let Err(error) = outcome {
                failed += 1;
                first.get_or_insert((partition, error));
            }
        }
        let Some((partition, error)) = first else { return Ok(()) };
        Err(match Error::from(error) {
            Error::Unreachable(reason) => {
                Error::Unreachable(format!("{failed} of {count} partitions, the first is {partition}: {reason}"))
            }
            other => other,
        })
    }

    /// Removes our nodes, addresses first. Then waits until brokers make no more calls.
    async fn take_back(self, was_registered: bool) {
        let (queue, subscriber) = (&self.queue, &self.subscription.name);
        let deadline = Instant::now() + REMOVAL;
        while let Err(error) = self.remove_nodes().await {
            if Instant::now() >= deadline || self.cluster.session() != Some(self.sessions.now) {
                tracing::warn!(queue, subscriber, %error, "the registration is not removed: it goes with the session");
                return;
            }
            sleep(SETTLE).await;
        }
        if !was_registered {
            return;
        }
        let leave = UnsubscribeArgs { registration_id: self.registration };
        match self.client.with_call_timeout(LEAVE).call::<Unsubscribe>(&leave).await {
            // Brokers have forgotten it already.
            Ok(()) | Err(ClientError::Refused { code: TErrorCode::NOT_FOUND, .. }) => {
                tracing::info!(queue, subscriber, "unregistered");
            }
            Err(error) => {
                tracing::warn!(queue, subscriber, %error, "unregistered, but no broker has said that calls have ended");
            }
        }
    }

    async fn remove_nodes(&self) -> Result<(), CoordinationError> {
        let places = || self.placed.iter().flat_map(|(p, suffixes)| suffixes.iter().map(|s| (*p, s)));
        let pairs: Vec<[String; 2]> = places()
            .map(|(p, suffix)| nodes::names(&paths::subscriber(&self.queue, p, &self.subscription.name), suffix))
            .collect();
        for which in [1, 0] {
            let paths: Vec<&String> = pairs.iter().filter_map(|pair| pair.get(which)).collect();
            let removals: Vec<_> =
                paths.into_iter().map(|path| nodes::remove(&**self.coordinator(), &self.sessions, path)).collect();
            let removed: Vec<_> = stream::iter(removals).buffer_unordered(CONCURRENT).collect().await;
            removed.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }

    fn coordinator(&self) -> &SharedCoordinator {
        self.cluster.coordinator()
    }
}

fn closed(_: Ended) -> Error {
    Error::from(CoordinationError::Closed)
}

/// 1 s doubling to 10 s, with 20 % jitter.
fn wait_after(failures: u32) -> Duration {
    let doubled = Duration::from_secs(1 << failures.saturating_sub(1).min(4)).min(MAX_WAIT);
    doubled.mul_f64(0.8 + 0.4 * fastrand::f64())
}
