//! A consumer that sets the pace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use hqueue_protocol::generated::TMessageID;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::names::SubscriberName;
use hqueue_protocol::position::Position;
use hqueue_protocol::rpc::{Commit, CommitArgs, Fetch, Method, SeekSubscriber, SeekSubscriberArgs};
use tokio::time::Instant;

use super::Fetched;
use super::connections::Connections;
use super::request::{self, ANSWER, MAX_WAIT, Request};
use crate::admin::SubscriberSpec;
use crate::error::{Error, ErrorCode};
use crate::hqueue::HQueue;
use crate::queue::Queue;
use crate::subscriber::position_text;

/// So many partitions are asked at once.
pub(super) const AT_ONCE: usize = 16;

/// Fetches messages of a queue when it wants some. Cloning is cheap; clones share the position.
///
/// With a name, how far it came is kept by the broker, under this name, as for a subscriber that is called: several processes of one name go
/// on where the last one has committed. Without a name the position is kept here, and gone with the last clone: `seek` says where it
/// begins, and `commit` moves it.
///
/// Every fetch under way has a connection to itself, so that a long wait holds up nothing else. A fetch that is dropped leaves nothing behind,
/// here or at the broker, and moves nothing.
#[derive(Clone, Debug)]
pub struct PullConsumer {
    hqueue: HQueue,
    queue: Queue,
    name: Option<SubscriberName>,
    topics: Vec<Bytes>,
    connections: Arc<Connections>,
    /// Without a name: where each partition goes on.
    own: Arc<Mutex<BTreeMap<i16, MessageId>>>,
}

impl PullConsumer {
    pub(crate) fn new(hqueue: HQueue, queue: Queue, name: Option<&str>) -> Result<Self, Error> {
        let name = name.map(SubscriberName::parse).transpose().map_err(|error| Error::Invalid(error.to_string()))?;
        let connections = Arc::new(Connections::new(hqueue.clone()));
        Ok(Self { hqueue, queue, name, topics: Vec::new(), connections, own: Arc::default() })
    }

    /// Only this topic, and others that are added. Without any: those of the subscriber, or all.
    #[must_use]
    pub fn topic(mut self, topic: impl Into<Bytes>) -> Self {
        self.topics.push(topic.into());
        self
    }

    /// The subscriber's name, if the broker keeps the position.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(SubscriberName::as_str)
    }

    /// The partitions of the queue.
    pub async fn partitions(&self) -> Result<Vec<i16>, Error> {
        let count = i16::try_from(self.queue.partitions().await?).unwrap_or(i16::MAX);
        Ok((0..count).collect())
    }

    /// Makes the place where the position is kept, if the name is new: it begins at `from`, with the topics of this consumer. True: it was
    /// new. Without a name: [`seek`](Self::seek), unless there is a position.
    pub async fn begin(&self, from: Position) -> Result<bool, Error> {
        let Some(name) = self.name() else {
            let known = !self.own().is_empty();
            if !known {
                self.seek(from, &[]).await?;
            }
            return Ok(!known);
        };
        let spec =
            SubscriberSpec { name: name.to_owned(), topics: self.topics.clone(), start: Some(from), ..SubscriberSpec::default() };
        match self.hqueue.admin().add_subscriber(self.queue.name(), &spec).await {
            Err(error) if error.code() == Some(ErrorCode::Exists) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// The next messages of a partition: `max` at most (1 to 100,000) and 8 MiB. If there are none, waits up to `wait` for the first one;
    /// the broker wakes it. `position`: where to begin; `None`: behind what was committed.
    ///
    /// An empty result whose `next` is further on says that what lies before it is not wanted; the broker looks on for some seconds at
    /// least.
    pub async fn fetch(
        &self,
        partition: i16,
        position: impl Into<Option<Position>> + Send,
        max: u32,
        wait: Duration,
    ) -> Result<Fetched, Error> {
        let position = position.into().map(position_text);
        let deadline = Instant::now().checked_add(wait);
        let mut request = self.request(partition, position, max)?;
        loop {
            let left = deadline.map_or(MAX_WAIT, |deadline| deadline.saturating_duration_since(Instant::now()));
            request.wait = left.min(MAX_WAIT);
            let fetched = self.ask(&request).await?;
            if !fetched.messages.is_empty() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(fetched);
            }
            request.position = Some(fetched.next.to_string());
        }
    }

    /// Everything below `next` (of a [`Fetched`]) is done: after a restart it is not fetched again. Never moves back. With a name, it is
    /// stored when this returns.
    pub async fn commit(&self, partition: i16, next: MessageId) -> Result<(), Error> {
        let Some(name) = self.name() else {
            let mut own = self.own();
            let position = own.entry(partition).or_insert(next);
            *position = next.max(*position);
            return Ok(());
        };
        let args = CommitArgs {
            queue_name: self.queue.name().into(),
            subscriber: name.into(),
            partition,
            next_id: TMessageID::new(next.timestamp, next.sequence),
        };
        Ok(self.hqueue.client().call::<Commit>(&args).await?)
    }

    /// Goes on at `position` in these partitions (none named: all), forward or back: the next message is the first at or behind it.
    /// `Latest` is what is there now.
    pub async fn seek(&self, position: Position, partitions: &[i16]) -> Result<(), Error> {
        if let Some(name) = self.name() {
            let args = SeekSubscriberArgs {
                queue_name: self.queue.name().into(),
                subscriber: name.into(),
                position: position_text(position),
                partitions: partitions.to_vec(),
            };
            return Ok(self.hqueue.client().call::<SeekSubscriber>(&args).await?);
        }
        let partitions = if partitions.is_empty() { self.partitions().await? } else { partitions.to_vec() };
        let places = partitions.into_iter().map(|partition| async move {
            let id = match position {
                Position::Earliest => MessageId::MIN,
                Position::Id(id) => id,
                // The broker says which id that is at this moment.
                other => {
                    let found = self.ask(&self.request(partition, Some(position_text(other)), 1)?).await?;
                    found.messages.first().map_or(found.next, |message| message.id)
                }
            };
            Ok::<_, Error>((partition, id))
        });
        let places: Vec<_> = stream::iter(places).buffer_unordered(AT_ONCE).try_collect().await?;
        self.own().extend(places);
        Ok(())
    }

    /// What to ask for; without a position: behind what was committed.
    pub(super) fn request(&self, partition: i16, position: Option<String>, max: u32) -> Result<Request, Error> {
        if !(1..=request::MAX_MESSAGES).contains(&max) {
            return Err(Error::Invalid(format!("{max} messages: a fetch asks for 1 to {}", request::MAX_MESSAGES)));
        }
        let own = || self.own().get(&partition).map(MessageId::to_string);
        let position = position.or_else(|| if self.name.is_none() { own() } else { None });
        if position.is_none() && self.name.is_none() {
            return Err(Error::Invalid(format!(
                "no position in partition {partition}: a consumer without a name begins with a seek"
            )));
        }
        Ok(Request {
            queue: self.queue.name().to_owned(),
            partition,
            position,
            subscriber: self.name().map(str::to_owned),
            topics: self.topics.clone(),
            messages: max,
            wait: Duration::ZERO,
        })
    }

    /// One call.
    pub(super) async fn ask(&self, request: &Request) -> Result<Fetched, Error> {
        let taken = self.connections.take();
        let client = taken.client.with_call_timeout(request.wait + ANSWER);
        let body = client.call_encoded(Fetch::NAME, request.encode()).await?;
        taken.give_back();
        request::read(&body, request.partition)
    }

    pub(super) const fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    fn own(&self) -> std::sync::MutexGuard<'_, BTreeMap<i16, MessageId>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
