//! Endpoints that announce themselves to a broker: `subscribe`, `renew`, `unsubscribe`. The broker writes their nodes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{Claim, CoordinationError, claim};
use hqueue_protocol::generated::{TErrorCode, TRegistration};
use hqueue_protocol::position::Position;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::queue::Queue;
use super::registered::{self, AddressRecord};
use super::subscribers::{self, NewSubscriber};
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{SubscriptionRecord, topics_to_json};

/// A registration ends when it was not renewed for so long.
pub const LIFETIME: Duration = Duration::from_secs(10);
/// How long `unsubscribe` waits for the call under way.
const UNSUBSCRIBE_PATIENCE: Duration = Duration::from_secs(10);
/// How long `subscribe` waits until the endpoint is called here.
const ANNOUNCE_PATIENCE: Duration = Duration::from_secs(2);
/// At most so many at once in one broker.
const MAX_REGISTRATIONS: usize = 100_000;

/// So many nodes are written at once.
const CONCURRENT_WRITES: usize = 24;

#[derive(Clone, Debug)]
struct Registration {
    queue: Arc<Queue>,
    subscriber: String,
    address: AddressRecord,
    topics: Vec<Vec<u8>>,
    partitions: Vec<i16>,
    /// The nodes that stand for it, topics before addresses.
    nodes: Vec<String>,
    expires: Instant,
}

/// All registrations with this broker. Each stands in coordination, in ephemeral nodes of the broker's session; that it is alive is
/// known here alone.
#[derive(Debug, Default)]
pub struct Registrations {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<i64, Registration>,
    /// The task that ends what was not renewed runs.
    watched: bool,
}

impl Registrations {
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a registration for another lifetime.
    pub fn renew(&self, id: i64) -> Result<(), Refusal> {
        let mut known = self.lock();
        let registration = known.by_id.get_mut(&id).ok_or_else(|| no_registration(id))?;
        registration.expires = Instant::now() + LIFETIME;
        Ok(())
    }

    fn take(&self, id: i64) -> Option<Registration> {
        self.lock().by_id.remove(&id)
    }

    /// Takes what was not renewed, and says when the next one is due; `None` when there is none.
    fn take_expired(&self) -> (Vec<(i64, Registration)>, Option<Instant>) {
        let now = Instant::now();
        let mut known = self.lock();
        let ended: Vec<i64> = known.by_id.iter().filter(|(_, r)| r.expires <= now).map(|(id, _)| *id).collect();
        let ended = ended.into_iter().filter_map(|id| known.by_id.remove(&id).map(|r| (id, r))).collect();
        let next = known.by_id.values().map(|r| r.expires).min();
        known.watched = next.is_some();
        (ended, next)
    }

    /// Forgets the registrations of a queue or a subscriber whose nodes are deleted.
    pub fn forget(&self, queue: &Queue, subscriber: Option<&str>) {
        let of_this = |r: &Registration| std::ptr::eq(&*r.queue, queue) && subscriber.is_none_or(|s| s == r.subscriber);
        self.lock().by_id.retain(|_, r| !of_this(r));
    }
}

fn no_registration(id: i64) -> Refusal {
    Refusal::not_found(format!("there is no registration {id}: it has ended, subscribe again"))
}

impl Catalog {
    /// Announces an endpoint; makes the subscriber if its name is new. Returns the registration's id.
    pub async fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>, wanted: &TRegistration) -> Result<i64, Refusal> {
        let name = subscribers::check_name(wanted.subscriber.as_deref().unwrap_or_default())?;
        let address = address_record(wanted)?;
        let from = subscribers::parse_position(wanted.start_position.as_deref())?;
        let partition_from = partition_positions(queue, wanted)?;
        let topics = subscribers::check_topics(wanted.topics.clone().unwrap_or_default())?;
        let partitions = subscribers::check_partitions(queue, wanted.partitions.as_deref().unwrap_or_default())?;
        if self.registrations.lock().by_id.len() >= MAX_REGISTRATIONS {
            return Err(Refusal::new(
                TErrorCode::TOO_LARGE,
                format!("{MAX_REGISTRATIONS} registrations are the limit of a broker"),
            ));
        }
        let _one = queue.changes.lock().await;
        let _alone = self.lock_subscriber(queue, name.as_str()).await?;
        let options = self.coordinator.get(&paths::subscriber(queue.name.as_str(), name.as_str())).await?;
        match options {
            // New, or registered by hand until now: then it has checkpoints, which stay.
            None => {
                let record = SubscriptionRecord { topics: topics.clone(), partitions: partitions.clone(), ..Default::default() };
                self.add_new_subscriber(queue, NewSubscriber { name: name.clone(), record, from, partition_from }).await?;
            }
            Some(_) => {
                let record = self.record_of(queue, name.as_str()).await?;
                self.widen(queue, name.as_str(), record, &topics, &partitions, &from, &partition_from).await?;
            }
        }
        let registration = Registration {
            queue: Arc::clone(queue),
            subscriber: name.as_str().to_owned(),
            address,
            topics,
            partitions: subscribers::all_or(queue, &partitions),
            nodes: Vec::new(),
            expires: Instant::now() + LIFETIME,
        };
        let id = self.announce(registration).await?;
        let called = || queue.subscription(name.as_str()).ok().filter(|s| s.endpoint_of(id).is_some()).map(drop);
        if queue.held_partitions().iter().any(|p| partitions.is_empty() || partitions.contains(p)) {
            // If it takes longer than this, it is called when the nodes are seen.
            self.until(ANNOUNCE_PATIENCE, called).await;
        }
        self.watch_registrations();
        Ok(id)
    }

    /// Fits a subscriber that exists to what one more of its endpoints wants.
    #[expect(clippy::too_many_arguments, reason = "what one registration says, taken apart by its only caller")]
    async fn widen(
        &self,
        queue: &Arc<Queue>,
        name: &str,
        mut record: SubscriptionRecord,
        topics: &[Vec<u8>],
        partitions: &[i16],
        from: &Position,
        partition_from: &BTreeMap<i16, Position>,
    ) -> Result<(), Refusal> {
        if !record.addresses.is_empty() {
            let message = format!(
                "subscriber {name} of queue {} has fixed endpoints ({}): delete it first",
                queue.name,
                record.addresses.join(", ")
            );
            return Err(Refusal::new(TErrorCode::EXISTS, message));
        }
        let mut have = subscribers::all_or(queue, &record.partitions);
        let new: Vec<i16> = subscribers::all_or(queue, partitions).into_iter().filter(|p| !have.contains(p)).collect();
        if new.is_empty() && record.topics == topics {
            return Ok(());
        }
        have.extend_from_slice(&new);
        have.sort_unstable();
        let all = have.len() == usize::try_from(queue.partitions()).unwrap_or_default();
        record.partitions = if all { Vec::new() } else { have };
        record.topics = topics.to_vec();
        self.first_checkpoints(queue, name, &new, from, partition_from).await?;
        self.keep_record(queue, name, &record).await
    }

    /// Writes the nodes of a registration. A second one of an address takes the place of the first: its process was started anew.
    async fn announce(&self, mut registration: Registration) -> Result<i64, Refusal> {
        let id = fastrand::i64(1..);
        registration.address.registration = Some(id);
        let earlier: Vec<Registration> = {
            let mut known = self.registrations.lock();
            let same = |r: &Registration| {
                Arc::ptr_eq(&r.queue, &registration.queue)
                    && r.subscriber == registration.subscriber
                    && r.address.address == registration.address.address
            };
            let ids: Vec<i64> = known.by_id.iter().filter(|(_, r)| same(r)).map(|(id, _)| *id).collect();
            ids.into_iter().filter_map(|id| known.by_id.remove(&id)).collect()
        };
        for earlier in &earlier {
            self.remove_nodes(earlier).await;
        }
        let written = self.write_nodes(id, &mut registration).await;
        if let Err(refusal) = written {
            self.remove_nodes(&registration).await;
            return Err(refusal);
        }
        self.registrations.lock().by_id.insert(id, registration);
        Ok(id)
    }

    async fn write_nodes(&self, id: i64, registration: &mut Registration) -> Result<(), Refusal> {
        let bases: Vec<String> = registration
            .partitions
            .iter()
            .map(|p| paths::checkpoint(registration.queue.name.as_str(), *p, &registration.subscriber))
            .collect();
        let (topics, address) = (topics_to_json(&registration.topics), registration.address.to_payload());
        let writes: Vec<_> = bases.into_iter().map(|base| self.write_pair(base, id, &topics, &address)).collect();
        let results: Vec<_> = stream::iter(writes).buffer_unordered(CONCURRENT_WRITES).collect().await;
        let mut outcome = Ok(());
        for result in results {
            match result {
                Ok(pair) => registration.nodes.extend(pair),
                Err(error) => outcome = Err(error.into()),
            }
        }
        outcome
    }

    /// Topics before the address. The plain names if nobody has them, else names of our own.
    async fn write_pair(&self, base: String, id: i64, topics: &[u8], address: &[u8]) -> Result<[String; 2], CoordinationError> {
        for suffix in [String::new(), format!("-{id:x}")] {
            let pair = [format!("{base}/topics{suffix}"), format!("{base}/address{suffix}")];
            let [first, second] = &pair;
            if !self.make_ours(first, topics).await? {
                continue;
            }
            if self.make_ours(second, address).await? {
                return Ok(pair);
            }
            self.coordinator.delete(first, None).await?;
        }
        Err(CoordinationError::NodeExists(format!("{base}/address")))
    }

    /// False: somebody else has that name.
    async fn make_ours(&self, path: &str, payload: &[u8]) -> Result<bool, CoordinationError> {
        let session = self.lease.last_session();
        let is_left = |node: &hqueue_coordination::Node| {
            let book = self.cluster.as_ref().map(|cluster| &cluster.claims.book);
            node.owner_session != session && node.owner_session.is_some_and(|s| book.is_some_and(|book| book.contains(s)))
        };
        Ok(matches!(claim(&*self.coordinator, path, payload, is_left).await?, Claim::Held { .. }))
    }

    /// Removes the nodes of a registration, addresses first.
    async fn remove_nodes(&self, registration: &Registration) {
        let (topics, addresses): (Vec<_>, Vec<_>) =
            registration.nodes.iter().partition(|path| hqueue_coordination::name_of(path).starts_with("topics"));
        for paths in [addresses, topics] {
            let removals: Vec<_> = paths.into_iter().map(|path| self.remove_node(path)).collect();
            stream::iter(removals).buffer_unordered(CONCURRENT_WRITES).collect::<()>().await;
        }
    }

    async fn remove_node(&self, path: &str) {
        match self.coordinator.delete(path, None).await {
            Ok(()) | Err(CoordinationError::NoNode(_)) => {}
            Err(error) => tracing::debug!(path, "not removed, it goes with our session: {error}"),
        }
    }

    /// Writes the nodes of all registrations anew: our session is another one.
    pub async fn announce_again(&self) {
        let all: Vec<(i64, Registration)> = self.registrations.lock().by_id.iter().map(|(id, r)| (*id, r.clone())).collect();
        for (id, mut registration) in all {
            registration.nodes.clear();
            if let Err(refusal) = self.write_nodes(id, &mut registration).await {
                tracing::warn!(subscriber = registration.subscriber, "its registration is not written anew: {refusal}");
                // Its next renewal is refused, and it registers again.
                self.registrations.take(id);
                continue;
            }
            if let Some(known) = self.registrations.lock().by_id.get_mut(&id) {
                known.nodes = registration.nodes;
            }
        }
    }

    /// One task ends registrations that were not renewed; it runs while there are any.
    fn watch_registrations(self: &Arc<Self>) {
        if std::mem::replace(&mut self.registrations.lock().watched, true) {
            return;
        }
        let catalog = Arc::clone(self);
        self.scope.spawn(async move {
            loop {
                let (ended, next) = catalog.registrations.take_expired();
                for (_, registration) in ended {
                    let (queue, subscriber, address) =
                        (&registration.queue.name, &registration.subscriber, &registration.address.address);
                    tracing::warn!(%queue, subscriber, address, "the registration was not renewed and has ended");
                    catalog.remove_nodes(&registration).await;
                }
                let Some(next) = next else { return };
                tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = catalog.scope.stop.cancelled() => return,
                }
            }
        });
    }

    /// Ends a registration. Returns when no call to its endpoint is under way any more, or after 10 s.
    pub async fn unsubscribe(&self, id: i64) -> Result<(), Refusal> {
        let (here, elsewhere) = tokio::join!(self.unsubscribe_here(id), self.unsubscribe_elsewhere(id));
        if here || elsewhere { Ok(()) } else { Err(no_registration(id)) }
    }

    /// The same for what is here of it: the registration itself, and calls. False: nothing.
    pub async fn unsubscribe_here(&self, id: i64) -> bool {
        // One that wrote its nodes itself has removed them, and wants to know when it is left alone.
        let ours = self.registrations.take(id);
        if let Some(registration) = &ours {
            self.remove_nodes(registration).await;
        }
        self.left(id).await || ours.is_some()
    }

    /// Waits until no call is under way here for a registration whose nodes are gone, and keeps how far it came. False: it has no
    /// endpoint here.
    async fn left(&self, id: i64) -> bool {
        let of_it: Vec<_> = self
            .queues()
            .iter()
            .flat_map(|queue| queue.subscriptions())
            .filter_map(|s| s.endpoint_of(id).or_else(|| s.leaving_of(id)).map(|endpoint| (s, endpoint)))
            .collect();
        for (subscription, endpoint) in &of_it {
            self.until(UNSUBSCRIBE_PATIENCE, || subscription.endpoint_of(id).is_none().then_some(())).await;
            endpoint.drained(UNSUBSCRIBE_PATIENCE).await;
        }
        if !of_it.is_empty() {
            self.checkpoints.flush().await;
        }
        !of_it.is_empty()
    }
}

fn address_record(wanted: &TRegistration) -> Result<AddressRecord, Refusal> {
    let record = AddressRecord {
        address: wanted.address.clone().unwrap_or_default(),
        transport: wanted.transport.clone(),
        protocol: wanted.protocol.clone(),
        connections: None,
        tls: false,
        registration: None,
    };
    registered::read_address(&record.to_payload(), None).map_err(Refusal::invalid)?;
    Ok(record)
}

fn partition_positions(queue: &Queue, wanted: &TRegistration) -> Result<BTreeMap<i16, Position>, Refusal> {
    let mut positions = BTreeMap::new();
    for (partition, text) in wanted.partition_start_positions.iter().flatten() {
        queue.check_partition(*partition)?;
        positions.insert(*partition, subscribers::parse_position(Some(text))?);
    }
    Ok(positions)
}
