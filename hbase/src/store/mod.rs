//! The store behind the seam: all queues of a broker, each a table of HBase.

mod count;
mod gone;
mod hold;
mod ids;
mod known;
mod lane;
mod options;
mod page;
mod partition;
mod pending;
mod queue;
mod read;
mod record;
mod rows;
mod settings;
mod shared;
#[cfg(test)]
mod simulation;
mod tables;
mod truncate;

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use hqueue_storage::clock::Clock;
use hqueue_storage::marks::Marks;
use hqueue_storage::store::{CommitListener, MessageStore, QueueSpec, QueueStore, StoreCounters, StoreError};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

pub use self::options::{DEFAULT_REGIONS, HBaseOptions};
use self::queue::{HBaseQueue, OpenQueue};
pub use self::settings::TableSettings;
use self::shared::{Shared, failed};
pub use self::tables::TableFacts;
use crate::gateway::{Found, GatewayError, Gateways, probe};
use crate::schema::{HEADERS, INDEX, MESSAGE, split_keys};
use crate::table::{self, Identity, TableName, TableSpec};

/// Our own namespace, and the table of the records in it.
const NAMESPACE: &str = "hqueue";
const RECORDS: &str = "partitions";

/// How long the end of a store waits for answers of HBase. Whoever puts has been waited for before.
const CLOSE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// All queues of one broker, in HBase.
#[derive(Debug)]
pub struct HBaseStore {
    shared: Arc<Shared>,
    queues: Mutex<HashMap<String, Arc<HBaseQueue>>>,
    /// One queue is opened or removed at a time.
    changing: tokio::sync::Mutex<()>,
}

impl HBaseStore {
    /// Connects, and makes what all queues need.
    ///
    /// # Errors
    /// When HBase cannot be reached, or what answers is no Thrift2 gateway.
    pub async fn open(options: HBaseOptions, clock: Arc<dyn Clock>, marks: Arc<dyn Marks>) -> Result<Self, StoreError> {
        let records = TableName::new(NAMESPACE, RECORDS);
        let namespace = options.namespace.clone();
        let shared = Arc::new(Shared::new(options, clock, marks, records.for_rows()));
        let (gateways, deadline) = (&shared.gateways, shared.table_deadline());
        check_gateways(gateways).await?;
        let prepared = async {
            table::ensure_namespace(gateways, &namespace, deadline).await?;
            if !table::exists(gateways, &records, deadline).await? {
                table::ensure_namespace(gateways, NAMESPACE, deadline).await?;
                let spec = TableSpec { families: vec![record::FAMILY.to_vec()], ..TableSpec::default() };
                table::create(gateways, &records, &spec, Uuid::nil(), deadline).await?;
            }
            Ok(())
        };
        prepared.await.map_err(failed("preparing HBase"))?;
        Ok(Self { shared, queues: Mutex::default(), changing: tokio::sync::Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<HBaseQueue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self, name: &str) -> TableName {
        TableName::new(&self.shared.options.namespace, name)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.shared.is_closed() { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// As [`open_queue`](MessageStore::open_queue); a table that is made is made like this.
    ///
    /// # Errors
    /// When HBase does not answer, or refuses; when the table is another queue's and this store is not the only one.
    pub async fn open_with(
        &self,
        spec: QueueSpec,
        settings: &TableSettings,
        listener: Arc<dyn CommitListener>,
    ) -> Result<Arc<dyn QueueStore>, StoreError> {
        let _one_at_a_time = self.changing.lock().await;
        self.check()?;
        let known = self.lock().get(&spec.name).cloned();
        match known {
            Some(known) if known.spec.uid == spec.uid && !known.is_closed() => {
                known.set_listener(listener);
                return Ok(Arc::new(OpenQueue(known)));
            }
            Some(other) => other.close(),
            None => {}
        }
        if let Some(limit) = &spec.limit {
            let reason = format!(
                "a queue in HBase has no limit of its size ({} bytes were asked for): HBase's own quotas set one for its table",
                limit.max_bytes
            );
            return Err(StoreError::Remote { what: "opening a queue in HBase", reason, retryable: false });
        }
        let table = self.table(&spec.name);
        let identity = self.find_or_make(&spec, settings, &table).await.map_err(failed("opening a queue in HBase"))?;
        let partitions_per_region = self.shared.options.region_of(spec.partitions, settings.partitions_per_region);
        let queue = HBaseQueue::new(spec, identity, table, Arc::clone(&self.shared), partitions_per_region, listener);
        if self.shared.options.owns_everything {
            queue.acquire_all().await?;
        }
        self.lock().insert(queue.spec.name.clone(), Arc::clone(&queue));
        Ok(Arc::new(OpenQueue(queue)))
    }

    /// The queue's table: the one that is there, or a new one. That of another queue goes, if this store is the only one.
    async fn find_or_make(
        &self,
        spec: &QueueSpec,
        settings: &TableSettings,
        table: &TableName,
    ) -> Result<Identity, GatewayError> {
        let Shared { gateways, options, .. } = &*self.shared;
        let deadline = self.shared.table_deadline();
        loop {
            match table::describe(gateways, table, deadline).await? {
                Some(found) if !found.families.iter().any(|family| family == MESSAGE) => {
                    let message = format!("table {table} has no family \"message\": it is no queue");
                    return Err(GatewayError::Failed { message, can_retry: false });
                }
                Some(found) => match found.identity {
                    Some(identity) if identity.uid == spec.uid => {
                        table::set_enabled(gateways, table, true, deadline).await?;
                        return Ok(identity);
                    }
                    Some(other) if !options.owns_everything => return Err(of_another(table, other)),
                    Some(other) => {
                        tracing::info!(%table, "the table is of an earlier queue of this name: it is removed");
                        table::remove(gateways, table, other.incarnation, deadline).await?;
                    }
                    None => {
                        if let Some(why) = table::why_no_queue(gateways, table, spec.partitions, deadline).await? {
                            let message = format!("table {table} is no queue of {} partitions: {why}", spec.partitions);
                            return Err(GatewayError::Failed { message, can_retry: false });
                        }
                        tracing::warn!(%table, "the table was made by other tools: it is taken over with its rows, splits and settings");
                        return table::adopt(gateways, table, spec.uid, deadline).await;
                    }
                },
                None => {
                    let made = TableSpec {
                        ttl_seconds: options.family_ttl(spec.ttl_ms),
                        families: vec![MESSAGE.to_vec(), HEADERS.to_vec(), INDEX.to_vec()],
                        split_keys: split_keys(
                            spec.partitions,
                            options.region_of(spec.partitions, settings.partitions_per_region),
                        ),
                        attributes: settings.attributes.clone(),
                        compression: settings.compression,
                    };
                    if let Some(identity) = table::create(gateways, table, &made, spec.uid, deadline).await? {
                        return Ok(identity);
                    }
                }
            }
        }
    }

    async fn remove_now(&self, name: &str, uid: Uuid, partitions: Option<i16>) -> Result<(), StoreError> {
        let _one_at_a_time = self.changing.lock().await;
        self.check()?;
        let known = {
            let mut queues = self.lock();
            let is_it = queues.get(name).is_some_and(|known| known.spec.uid == uid);
            if is_it { queues.remove(name) } else { None }
        };
        if let Some(known) = &known {
            known.close();
            known.wait_until_idle().await;
        }
        let (table, deadline) = (self.table(name), self.shared.table_deadline());
        let gateways = &self.shared.gateways;
        let removed = async {
            let found = table::describe(gateways, &table, deadline).await?;
            let found = found.and_then(|found| found.identity).filter(|found| found.uid == uid);
            if let Some(found) = found {
                table::remove(gateways, &table, found.incarnation, deadline).await?;
            }
            Ok(found.map(|found| found.incarnation))
        };
        let incarnation = removed.await.map_err(failed("removing a queue from HBase"))?;
        // Of a table that somebody else has removed a moment ago the records may be left still.
        match (
            incarnation.or(known.as_ref().map(|known| known.identity.incarnation)),
            partitions.or(known.map(|k| k.spec.partitions)),
        ) {
            (Some(incarnation), Some(partitions)) => HBaseQueue::forget(&self.shared, incarnation, partitions).await,
            _ => Ok(()),
        }
    }

    async fn close_now(&self) {
        if self.shared.closed.swap(true, Relaxed) {
            return;
        }
        let queues: Vec<_> = self.lock().drain().map(|(_, queue)| queue).collect();
        queues.iter().for_each(|queue| queue.close());
        let session = self.shared.marks.current().map(|mark| mark.session);
        let deadline = Instant::now() + CLOSE_PATIENCE;
        for queue in queues {
            if timeout_at(deadline, queue.wait_until_idle()).await.is_err() {
                tracing::warn!(queue = queue.spec.name, "HBase has not answered all puts: they may appear later");
            }
            // Of another session, somebody else may have it by now.
            let is_new = |held: &mut partition::Partition| held.has_news() && session == Some(held.session);
            let news = (0..queue.spec.partitions).filter(|p| queue.with(*p, is_new).unwrap_or(false));
            let news: Vec<i16> = news.collect();
            let late = || StoreError::Remote {
                what: "writing what is known of partitions to HBase",
                reason: format!("not within {CLOSE_PATIENCE:?}"),
                retryable: true,
            };
            let kept = timeout_at(deadline, queue.keep(news.into_iter(), true)).await;
            if let Err(error) = kept.unwrap_or_else(|_| Err(late())) {
                tracing::warn!(queue = queue.spec.name, %error, "the next owner will have to look for the last messages");
            }
        }
    }
}

/// Brokers that share HBase remove a table together with its queue, so this is none that was forgotten.
fn of_another(table: &TableName, other: Identity) -> GatewayError {
    let uid = other.uid;
    let message = format!(
        "table {table} holds the messages of another queue ({uid}): of another cluster, or of a queue whose creation failed. \
         If nobody needs them, remove it in HBase's shell: disable '{table}'; drop '{table}'"
    );
    GatewayError::Failed { message, can_retry: false }
}

/// One gateway has to be what it should be; of the others it is said what they are.
async fn check_gateways(gateways: &Gateways) -> Result<(), StoreError> {
    let options = gateways.options();
    let (mut found, mut wrong) = (0, Vec::new());
    let mut retryable = false;
    for address in &options.addresses {
        match probe(address, options).await {
            Found::Thrift2 => found += 1,
            other => {
                retryable |= matches!(other, Found::Nobody(_) | Found::Silent);
                wrong.push(format!("at {address} is {other}"));
            }
        }
    }
    if found > 0 {
        wrong.iter().for_each(|what| tracing::warn!("of HBase's gateways, {what}"));
        return Ok(());
    }
    let reason = if wrong.is_empty() { "no address is given".to_owned() } else { wrong.join("; ") };
    Err(StoreError::Remote { what: "connecting to HBase", reason, retryable })
}

impl MessageStore for HBaseStore {
    fn open_queue(
        &self,
        spec: QueueSpec,
        listener: Arc<dyn CommitListener>,
    ) -> BoxFuture<'_, Result<Arc<dyn QueueStore>, StoreError>> {
        Box::pin(async move { self.open_with(spec, &TableSettings::default(), listener).await })
    }

    fn remove_queue(&self, name: &str, uid: Uuid) -> BoxFuture<'_, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(async move { self.remove_now(&name, uid, None).await })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close_now())
    }

    fn counters(&self) -> StoreCounters {
        let counters = &self.shared.counters;
        StoreCounters {
            appended_messages: counters.appended_messages.load(Relaxed),
            appended_bytes: counters.appended_bytes.load(Relaxed),
            commits: counters.commits.load(Relaxed),
            syncs: counters.commits.load(Relaxed),
            sync_micros: counters.write_micros.load(Relaxed),
            disk_reads: counters.reads.load(Relaxed),
            disk_read_bytes: counters.read_bytes.load(Relaxed),
            tail_cache_bytes: self.shared.tails.bytes(),
            ..StoreCounters::default()
        }
    }
}
