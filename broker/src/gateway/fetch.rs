//! The pull consumer: `fetch` and `commit`, here or at the broker that owns the partition.
//!
//! A fetch that finds nothing waits for a commit in its partition. It is woken; while it waits it is its connection's future, a timer
//! and an entry in the partition's list, and it goes with the connection. It overlaps with other calls of its connection, and gives up
//! waiting when one of them needs that ([`Hurry`]): replies leave in the order of the calls.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hqueue_protocol::client::{ClientOptions, RpcClient};
use hqueue_protocol::generated::{TErrorCode, TFetch};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::position::Position;
use hqueue_protocol::rpc::{self, FetchArgs, Method};
use hqueue_protocol::server::{Hurry, Reply};
use hqueue_protocol::stored::{self, StoredSlice};
use hqueue_protocol::wire::Protocol;
use tokio::time::{Instant, sleep_until};

use super::scanners::read_id;
use super::service::{Gateway, messages_reply, refused};
use crate::catalog::{Queue, Route, of_peer};
use crate::partition::{Fill, MessageScanner, TopicFilter};
use crate::refusal::Refusal;

/// Most messages of a reply.
const MAX_MESSAGES: u32 = 100_000;
/// The longest wait for a message, in milliseconds.
const MAX_WAIT_MS: u64 = 30_000;
/// Most bytes of a reply, unless a single message is larger.
const REPLY_BYTES: usize = 8 * 1024 * 1024;
/// A fetch looks for messages that it wants for so long, however little it may wait; then it answers how far it came.
const LOOK: Duration = Duration::from_secs(5);
/// What a call to another broker may take beyond the wait.
const PEER_PATIENCE: Duration = Duration::from_secs(10);
const PEER_CONNECT: Duration = Duration::from_secs(2);

/// What was found.
struct Found {
    slices: Vec<StoredSlice>,
    /// Everything wanted below it was in the slices, or before them.
    next: MessageId,
}

impl Gateway {
    pub(super) async fn fetch(&self, protocol: Protocol, args: FetchArgs, hurry: Hurry) -> Reply {
        match self.fetched(protocol, args, &hurry).await {
            Ok(reply) => reply,
            Err(refusal) => refused::<rpc::Fetch>(protocol, refusal),
        }
    }

    async fn fetched(&self, protocol: Protocol, mut args: FetchArgs, hurry: &Hurry) -> Result<Reply, Refusal> {
        let (messages, wait) = limits(&args.what)?;
        // Clients of some languages send empty text for what was not set.
        args.what.position = args.what.position.filter(|text| !text.is_empty());
        args.what.subscriber = args.what.subscriber.filter(|name| !name.is_empty());
        let deadline = Instant::now() + wait;
        loop {
            let queue = self.catalog.find(&args.queue_name).await?;
            queue.check_partition(args.partition)?;
            if !self.catalog.is_here(&queue, args.partition) {
                return self.fetch_there(protocol, &queue, args, deadline, hurry).await;
            }
            if self.catalog.is_shared() && queue.ownership.held(args.partition).is_none() {
                // In a moment it is read.
                self.catalog.until_held(&queue, args.partition).await;
            }
            let fetches = queue.waiters.fetches();
            // Before the look: a commit that comes behind it wakes.
            let commit = fetches.of(args.partition).map(|commits| commits.notified());
            let found = self.look(&queue, &args, messages, deadline, hurry).await?;
            if !found.slices.is_empty() || Instant::now() >= deadline || hurry.is_told() {
                return Ok(messages_reply(stored::fetch_result(protocol, &found.slices, found.next)));
            }
            args.what.position = Some(found.next.to_string());
            // A queue that is dropped does not wait for those that wait for its messages.
            drop(queue);
            tokio::select! {
                () = async { if let Some(commit) = commit { commit.await } } => {}
                () = sleep_until(deadline) => {}
                () = hurry.told() => {}
            }
        }
    }

    /// Reads what is there.
    async fn look(
        &self,
        queue: &Arc<Queue>,
        args: &FetchArgs,
        messages: u32,
        deadline: Instant,
        hurry: &Hurry,
    ) -> Result<Found, Refusal> {
        let what = &args.what;
        let keeper = match &what.subscriber {
            Some(subscriber) => Some(self.catalog.keeper(queue, subscriber, args.partition).await?),
            None => None,
        };
        let filter = match (what.topics.as_ref().filter(|topics| !topics.is_empty()), &keeper) {
            (Some(topics), _) => TopicFilter::new(topics.clone()),
            (None, Some(keeper)) => keeper.shared().filter(),
            (None, None) => TopicFilter::default(),
        };
        let (from, checkpoint) = match (&what.position, &keeper) {
            (Some(position), _) => (resolve(queue, args.partition, position)?, None),
            (None, Some(keeper)) => {
                let checkpoint = keeper.checkpoint();
                (checkpoint.id.successor(), Some(checkpoint))
            }
            (None, None) => return Err(Refusal::invalid("a fetch names a position, or a subscriber whose position counts")),
        };
        let mut scanner = MessageScanner::new(Arc::clone(&queue.store), args.partition, filter, from, MessageId::MAX);
        if let Some(checkpoint) = checkpoint {
            scanner.reset(from, checkpoint.number);
        }
        let until = deadline.max(Instant::now() + LOOK);
        while scanner.fill(messages, REPLY_BYTES)? == Fill::Cold {
            let (store, cursor) = scanner.where_to_read();
            let is_end = scanner.accept(store.read(args.partition, cursor, REPLY_BYTES).await?)?;
            if is_end || hurry.is_told() || Instant::now() >= until {
                break;
            }
        }
        if let (Some(keeper), Some(checkpoint)) = (&keeper, checkpoint) {
            keeper.count_unread(checkpoint, scanner.take_missing());
        }
        let slices = scanner.take(messages, REPLY_BYTES)?;
        let next = match slices.last() {
            Some(last) if !scanner.is_hand_empty() => last.last.successor(),
            _ => scanner.scanned_to(),
        };
        Ok(Found { slices, next })
    }

    /// Has the owner answer. Replies of a connection come in the order of the calls, and that to the owner is shared: it is asked for what
    /// is there; the wait has a connection of its own, which ends with the client's.
    async fn fetch_there(
        &self,
        protocol: Protocol,
        queue: &Queue,
        mut args: FetchArgs,
        deadline: Instant,
        hurry: &Hurry,
    ) -> Result<Reply, Refusal> {
        let address = match self.catalog.route(queue, args.partition) {
            Route::At(address) if !self.own => address,
            Route::Offline(reason) => return Err(Refusal::new(TErrorCode::OFFLINE, reason)),
            Route::Here | Route::At(_) => return Err(not_here(queue, args.partition)),
        };
        args.what.wait_ms = Some(0);
        let first = ask(&self.catalog.peer(&address)?, &address, &args).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(next) = first.next_of_empty.filter(|_| !left.is_zero() && !hurry.is_told()) else {
            return Ok(relay(protocol, first.body));
        };
        args.what.position = Some(next.to_string());
        args.what.wait_ms = Some(i64::try_from(left.as_millis()).unwrap_or(i64::MAX));
        let options = ClientOptions {
            connect_timeout: PEER_CONNECT,
            call_timeout: left + LOOK + PEER_PATIENCE,
            ..ClientOptions::new(vec![address.clone()])
        };
        let peer = RpcClient::new(options);
        tokio::select! {
            waited = ask(&peer, &address, &args) => Ok(relay(protocol, waited?.body)),
            // What has come so far is nothing.
            () = hurry.told() => Ok(relay(protocol, first.body)),
        }
    }

    pub(super) async fn commit(&self, args: rpc::CommitArgs) -> Result<(), Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        queue.check_partition(args.partition)?;
        let next = read_id(&args.next_id)?;
        match self.catalog.route(&queue, args.partition) {
            Route::At(address) if !self.own => {
                let committed = self.catalog.peer(&address)?.call_owner::<rpc::Commit>(&args).await;
                return committed.map_err(|error| of_peer(&address, error));
            }
            Route::At(_) => return Err(not_here(&queue, args.partition)),
            Route::Offline(_) if self.catalog.is_claiming(&queue, args.partition) => {
                self.catalog.until_held(&queue, args.partition).await;
            }
            Route::Here | Route::Offline(_) => {}
        }
        if let Route::Offline(reason) = self.catalog.route(&queue, args.partition) {
            return Err(Refusal::new(TErrorCode::OFFLINE, reason));
        }
        self.catalog.commit(&queue, &args.subscriber, args.partition, next).await
    }
}

/// How many messages are wanted, and how long the fetch may wait.
fn limits(what: &TFetch) -> Result<(u32, Duration), Refusal> {
    let messages = what.max_messages.unwrap_or_default();
    let wait = what.wait_ms.unwrap_or_default();
    let messages = u32::try_from(messages)
        .ok()
        .filter(|n| (1..=MAX_MESSAGES).contains(n))
        .ok_or_else(|| Refusal::invalid(format!("maxMessages is {messages}: a fetch asks for 1 to {MAX_MESSAGES} messages")))?;
    let wait = u64::try_from(wait)
        .ok()
        .filter(|ms| *ms <= MAX_WAIT_MS)
        .ok_or_else(|| Refusal::invalid(format!("waitMs is {wait}: a fetch waits 0 to {MAX_WAIT_MS} ms")))?;
    Ok((messages, Duration::from_millis(wait)))
}

/// The first id that a position means in a partition.
fn resolve(queue: &Queue, partition: i16, position: &str) -> Result<MessageId, Refusal> {
    match position.parse::<Position>().map_err(|error| Refusal::invalid(error.to_string()))? {
        Position::Earliest => Ok(MessageId::MIN),
        position => Ok(queue.checkpoint_at(partition, &position)?.successor()),
    }
}

/// What another broker has answered.
struct Answer {
    /// The result, in the binary protocol.
    body: Bytes,
    /// Where the next fetch begins, if there are no messages.
    next_of_empty: Option<MessageId>,
}

async fn ask(peer: &RpcClient, address: &str, args: &FetchArgs) -> Result<Answer, Refusal> {
    /// More than a result without messages has.
    const SMALL: usize = 128;
    let encoded = rpc::Fetch::encode_args(Protocol::Binary, args);
    let body = peer.call_encoded(rpc::Fetch::AT_OWNER, encoded.into()).await.map_err(|error| of_peer(address, error))?;
    let mut next_of_empty = None;
    if body.len() < SMALL
        && let Ok(Ok(fetched)) = rpc::Fetch::decode_result(Protocol::Binary, &body)
        && fetched.messages.is_none_or(|messages| messages.is_empty())
    {
        next_of_empty = fetched.next_i_d.as_ref().and_then(|id| read_id(id).ok());
    }
    Ok(Answer { body, next_of_empty })
}

/// Another broker's result for our client.
fn relay(protocol: Protocol, body: Bytes) -> Reply {
    if protocol == Protocol::Binary {
        return Reply::Result(vec![body]);
    }
    match rpc::Fetch::decode_result(Protocol::Binary, &body) {
        Ok(result) => Reply::Result(vec![rpc::Fetch::encode_result(protocol, &result).into()]),
        Err(error) => Reply::Failed(format!("another broker's reply cannot be read: {error}")),
    }
}

fn not_here(queue: &Queue, partition: i16) -> Refusal {
    Refusal::new(TErrorCode::OFFLINE, format!("partition {partition} of queue {} is not at this broker", queue.name))
}
