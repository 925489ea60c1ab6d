//! Gathers the puts of many tasks into batches.
//!
//! A message is sent at once while fewer than four batches are under way; what comes meanwhile waits and goes together. So a lone put
//! is as fast as one without a producer, and many share the cost of a request and of a sync.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hqueue_protocol::client::RpcClient;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use super::args::{ANY_PARTITION, PutArgs};
use super::gather::{Batch, Gathering};
use super::outcome::PendingPut;
use super::{NewMessage, Placed, Target, read_put_result};
use crate::error::Error;
use crate::queue::Queue;

/// Batches under way.
const IN_FLIGHT: usize = 4;

/// Bounds of a producer. [`Default`] gives what each field's comment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerOptions {
    /// Most messages in a batch. Default 1000; 1 to 100,000.
    pub batch_messages: u32,
    /// Most bytes in a batch, unless a single message is larger. Default 1 MiB; 1 KiB to 16 MiB.
    pub batch_bytes: usize,
    /// Messages that were taken and whose outcome is not known. A further put waits. Default 20,000; `batch_messages` or more.
    pub pending_messages: u32,
    /// The same in bytes; a message counts with topic, value, headers and some bytes around them. Default 32 MiB; `batch_bytes` to
    /// 2 GiB. A message larger than this counts as this.
    pub pending_bytes: u32,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self { batch_messages: 1000, batch_bytes: 1 << 20, pending_messages: 20_000, pending_bytes: 32 << 20 }
    }
}

impl ProducerOptions {
    /// Compares every option with its limits.
    fn check(&self) -> Result<(), Error> {
        let bad = |name: &str, value: usize, limits: &str| {
            Err(Error::Invalid(format!("the producer's {name} is {value}; it can be {limits}")))
        };
        match self {
            Self { batch_messages: n, .. } if !(1..=100_000).contains(n) => bad("batch_messages", *n as usize, "1 to 100000"),
            Self { batch_bytes: n, .. } if !(1 << 10..=16 << 20).contains(n) => bad("batch_bytes", *n, "1024 to 16777216"),
            Self { pending_messages: n, batch_messages, .. } if n < batch_messages || *n as usize > Semaphore::MAX_PERMITS => {
                bad("pending_messages", *n as usize, &format!("{batch_messages} or more"))
            }
            Self { pending_bytes: n, batch_bytes, .. } if (*n as usize) < *batch_bytes || *n > 1 << 31 => {
                bad("pending_bytes", *n as usize, &format!("{batch_bytes} to 2147483648"))
            }
            _ => Ok(()),
        }
    }
}

/// Puts the messages of many tasks in batches: call [`put`](Self::put) from as many as you like.
///
/// Messages of a partition that one task puts one after the other stay in order. When a batch fails, its error goes to everyone who
/// has a message in it; later batches are sent all the same. Nothing is sent a second time.
#[derive(Clone, Debug)]
pub struct Producer {
    queue: Queue,
    shared: Arc<Shared>,
    sender: Arc<SenderTask>,
}

#[derive(Debug)]
struct Shared {
    options: ProducerOptions,
    gathering: Mutex<Gathering>,
    /// Something waits that was not seen.
    filled: Notify,
    messages: Semaphore,
    bytes: Semaphore,
}

/// Ends with the last clone of its producer, or when that is closed.
#[derive(Debug)]
struct SenderTask(Mutex<Option<JoinHandle<()>>>);

impl SenderTask {
    fn take(&self) -> Option<JoinHandle<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for SenderTask {
    fn drop(&mut self) {
        if let Some(task) = self.take() {
            task.abort();
        }
    }
}

impl Producer {
    /// Belongs to the runtime in which it was made.
    pub(crate) fn new(queue: Queue, client: RpcClient, options: ProducerOptions) -> Result<Self, Error> {
        options.check()?;
        let runtime =
            Handle::try_current().map_err(|_| Error::Invalid("a producer is made inside a tokio runtime".to_owned()))?;
        let gathering = Gathering::new(queue.name().to_owned(), options.batch_messages, options.batch_bytes);
        let shared = Arc::new(Shared {
            gathering: Mutex::new(gathering),
            filled: Notify::new(),
            messages: Semaphore::new(options.pending_messages as usize),
            bytes: Semaphore::new(options.pending_bytes as usize),
            options,
        });
        let task = runtime.spawn(send_batches(Arc::clone(&shared), client));
        Ok(Self { queue, shared, sender: Arc::new(SenderTask(Mutex::new(Some(task)))) })
    }

    /// Puts a message and returns when it is durable.
    pub async fn put(&self, target: Target, message: NewMessage) -> Result<Placed, Error> {
        self.enqueue(target, message).await?.placed().await
    }

    /// Hands a message over, and returns before it is durable: waits only while too much is pending.
    ///
    /// Cancel-safe: a future that is dropped before it is done has put nothing.
    pub async fn enqueue(&self, target: Target, message: NewMessage) -> Result<PendingPut, Error> {
        let partition = match target {
            Target::Any => ANY_PARTITION,
            Target::Partition(partition) => self.queue.check_target(partition)?,
            Target::Key(key) => self.queue.partition_of_key(&key).await?,
        };
        let shared = &self.shared;
        let bytes = PutArgs::message_len(&message).min(shared.options.pending_bytes as usize);
        let one = shared.messages.acquire().await.map_err(|_| Error::Closed)?;
        let room = shared.bytes.acquire_many(u32::try_from(bytes).unwrap_or(u32::MAX)).await.map_err(|_| Error::Closed)?;
        let pending = shared.lock().push(partition, &message, bytes)?;
        // Given back when the batch is settled.
        one.forget();
        room.forget();
        shared.filled.notify_one();
        Ok(pending)
    }

    /// Waits until the outcome of everything that was put so far is known. Further puts wait meanwhile.
    pub async fn flush(&self) -> Result<(), Error> {
        let all = self.shared.options.pending_messages;
        self.shared.messages.acquire_many(all).await.map(drop).map_err(|_| Error::Closed)
    }

    /// Takes nothing more, and returns when the outcome of everything that was put is known.
    pub async fn close(&self) -> Result<(), Error> {
        let shared = &self.shared;
        let all = shared.messages.acquire_many(shared.options.pending_messages).await.map_err(|_| Error::Closed)?;
        shared.messages.close();
        drop(all);
        shared.filled.notify_one();
        if let Some(task) = self.sender.take() {
            // It was not aborted, and has no reason to panic.
            let _ = task.await;
        }
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Gathering> {
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settled(&self, messages: u32, bytes: usize) {
        self.messages.add_permits(messages as usize);
        self.bytes.add_permits(bytes);
    }
}

/// Sends what was gathered, in order, until the producer is closed.
async fn send_batches(shared: Arc<Shared>, client: RpcClient) {
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < IN_FLIGHT {
            let Some(batch) = shared.lock().pop() else { break };
            under_way.push(send(&shared, &client, batch).await);
        }
        if shared.messages.is_closed() && under_way.is_empty() {
            return;
        }
        let full = under_way.len() >= IN_FLIGHT;
        tokio::select! {
            Some(()) = under_way.next() => {}
            () = shared.filled.notified(), if !full => {}
        }
    }
}

/// Starts one batch; the future that comes back ends when it is settled. Two steps, so that batches leave in order.
async fn send<'a>(shared: &'a Shared, client: &RpcClient, batch: Batch) -> impl Future<Output = ()> + 'a {
    let Batch { args, mut outcome, held_bytes, .. } = batch;
    let count = args.count();
    outcome.sent();
    let call = client.start(PutArgs::METHOD, args.finish()).await;
    async move {
        let reply = match call {
            Ok(call) => call.reply().await.map_err(Error::from),
            Err(error) => Err(error.into()),
        };
        outcome.settle(reply.and_then(|body| read_put_result(&body, count as usize)));
        shared.settled(count, held_bytes);
    }
}
