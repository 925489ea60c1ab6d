//! Endpoints that announce themselves: `subscribe`, `renew`, `unsubscribe`. Kept in memory only.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hqueue_protocol::generated::{TErrorCode, TRegistration};
use hqueue_protocol::position::Position;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::queue::Queue;
use super::subscribers::{self, NewSubscriber};
use crate::refusal::Refusal;
use crate::subscription::{Endpoint, EndpointSpec, Subscription, SubscriptionOptions, SubscriptionRecord};

/// A registration ends when it was not renewed for so long.
pub const LIFETIME: Duration = Duration::from_secs(10);
/// How long `unsubscribe` waits for the call under way.
const UNSUBSCRIBE_PATIENCE: Duration = Duration::from_secs(10);
/// At most so many at once in one broker.
const MAX_REGISTRATIONS: usize = 100_000;

#[derive(Debug)]
struct Registration {
    queue: Arc<Queue>,
    subscriber: String,
    endpoint: EndpointSpec,
    expires: Instant,
}

/// All registrations with this broker.
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

    fn endpoints(&self, queue: &Queue, subscriber: &str) -> Vec<EndpointSpec> {
        let known = self.lock();
        let of_this = known.by_id.values().filter(|r| std::ptr::eq(&*r.queue, queue) && r.subscriber == subscriber);
        of_this.map(|r| r.endpoint.clone()).collect()
    }

    /// Has the subscription call what is registered for it now. Returns the endpoints that it gave up.
    fn apply(&self, queue: &Queue, subscriber: &str) -> Vec<Arc<Endpoint>> {
        let Ok(subscription) = queue.subscription(subscriber) else { return Vec::new() };
        if !subscription.record().addresses.is_empty() {
            return Vec::new();
        }
        subscription.set_endpoints(self.endpoints(queue, subscriber))
    }

    fn take(&self, id: i64) -> Option<Registration> {
        self.lock().by_id.remove(&id)
    }

    /// Ends what was not renewed; returns when the next one is due, `None` when there is none.
    fn expire(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut known = self.lock();
        let ended: Vec<i64> = known.by_id.iter().filter(|(_, r)| r.expires <= now).map(|(id, _)| *id).collect();
        let ended: Vec<Registration> = ended.iter().filter_map(|id| known.by_id.remove(id)).collect();
        let next = known.by_id.values().map(|r| r.expires).min();
        known.watched = next.is_some();
        drop(known);
        for registration in ended {
            let (queue, address) = (&registration.queue, &registration.endpoint.address);
            tracing::warn!(queue = %queue.name, subscriber = registration.subscriber, address, "the registration was not renewed and has ended");
            self.apply(queue, &registration.subscriber);
        }
        next
    }

    /// Forgets the registrations of a queue or a subscriber that was deleted.
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
        let endpoint = endpoint_spec(queue, wanted)?;
        let from = subscribers::parse_position(wanted.start_position.as_deref())?;
        let partition_from = partition_positions(queue, wanted)?;
        let topics = subscribers::check_topics(wanted.topics.clone().unwrap_or_default())?;
        let partitions = endpoint.partitions.clone().unwrap_or_default();
        if self.registrations.lock().by_id.len() >= MAX_REGISTRATIONS {
            return Err(Refusal::new(
                TErrorCode::TOO_LARGE,
                format!("{MAX_REGISTRATIONS} registrations are the limit of a broker"),
            ));
        }
        let _one = self.changes.lock().await;
        match queue.subscription(name.as_str()) {
            Err(_) => {
                let record =
                    SubscriptionRecord { addresses: Vec::new(), topics, partitions, options: SubscriptionOptions::default() };
                self.add_new_subscriber(queue, NewSubscriber { name: name.clone(), record, from, partition_from }).await?;
            }
            Ok(subscription) => self.widen(queue, &subscription, topics, &partitions, &from, &partition_from).await?,
        }
        let id = self.keep_registration(queue, name.as_str(), endpoint);
        self.registrations.apply(queue, name.as_str());
        self.watch_registrations();
        Ok(id)
    }

    /// Fits a subscriber that exists to what one more of its endpoints wants.
    async fn widen(
        &self,
        queue: &Arc<Queue>,
        subscription: &Subscription,
        topics: Vec<Vec<u8>>,
        partitions: &[i16],
        from: &Position,
        partition_from: &BTreeMap<i16, Position>,
    ) -> Result<(), Refusal> {
        let mut record = subscription.record();
        let name = subscription.shared().name.clone();
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
        record.topics.clone_from(&topics);
        let checkpoints = self.write_checkpoints(queue, &name, &new, from, partition_from).await?;
        self.keep_record(queue, &name, &record).await?;
        subscription.set_partitions(record.partitions);
        subscription.set_topics(&topics);
        subscription.start(checkpoints);
        Ok(())
    }

    /// A second registration of an address takes the place of the first: its process was started anew.
    fn keep_registration(&self, queue: &Arc<Queue>, subscriber: &str, mut endpoint: EndpointSpec) -> i64 {
        let mut known = self.registrations.lock();
        let same = |r: &Registration| {
            Arc::ptr_eq(&r.queue, queue) && r.subscriber == subscriber && r.endpoint.address == endpoint.address
        };
        known.by_id.retain(|_, r| !same(r));
        let mut id = fastrand::i64(1..);
        while known.by_id.contains_key(&id) {
            id = fastrand::i64(1..);
        }
        endpoint.registration = id;
        let (queue, subscriber, expires) = (Arc::clone(queue), subscriber.to_owned(), Instant::now() + LIFETIME);
        known.by_id.insert(id, Registration { queue, subscriber, endpoint, expires });
        id
    }

    /// One task ends registrations that were not renewed; it runs while there are any.
    fn watch_registrations(self: &Arc<Self>) {
        if std::mem::replace(&mut self.registrations.lock().watched, true) {
            return;
        }
        let catalog = Arc::clone(self);
        self.scope.spawn(async move {
            while let Some(next) = catalog.registrations.expire() {
                tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = catalog.scope.stop.cancelled() => return,
                }
            }
        });
    }

    /// Ends a registration. Returns when no call to its endpoint is under way any more, or after 10 s.
    pub async fn unsubscribe(&self, id: i64) -> Result<(), Refusal> {
        let registration = self.registrations.take(id).ok_or_else(|| no_registration(id))?;
        let gone = self.registrations.apply(&registration.queue, &registration.subscriber);
        for endpoint in gone {
            endpoint.drained(UNSUBSCRIBE_PATIENCE).await;
        }
        self.checkpoints.flush().await;
        Ok(())
    }
}

fn endpoint_spec(queue: &Queue, wanted: &TRegistration) -> Result<EndpointSpec, Refusal> {
    let address = wanted.address.clone().unwrap_or_default();
    subscribers::check_address(&address)?;
    let mut options = SubscriptionOptions::default();
    for (name, value) in [("transport", &wanted.transport), ("protocol", &wanted.protocol)] {
        if let Some(value) = value {
            options.set(name, value).map_err(|error| Refusal::invalid(error.to_string()))?;
        }
    }
    let partitions = subscribers::check_partitions(queue, wanted.partitions.as_deref().unwrap_or_default())?;
    Ok(EndpointSpec {
        address,
        registration: 0,
        transport: options.transport,
        protocol: options.protocol,
        partitions: (!partitions.is_empty()).then_some(partitions),
    })
}

fn partition_positions(queue: &Queue, wanted: &TRegistration) -> Result<BTreeMap<i16, Position>, Refusal> {
    let mut positions = BTreeMap::new();
    for (partition, text) in wanted.partition_start_positions.iter().flatten() {
        queue.check_partition(*partition)?;
        positions.insert(*partition, subscribers::parse_position(Some(text))?);
    }
    Ok(positions)
}
