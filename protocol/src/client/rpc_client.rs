//! The client: one connection at a time to one of several addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::ClientError;
use super::addresses::{Addresses, ChangingAddresses};
use super::connection::{Connection, ReplyReceiver};
use crate::rpc::Method;
use crate::wire::Protocol;

/// Where a client connects to, and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// `host:port` of one or more brokers; tried in turn, beginning with the one that worked last.
    pub addresses: Vec<String>,
    /// For a connection to be made, all addresses together. Default 3 s.
    pub connect_timeout: Duration,
    /// From the call to its reply, connecting included. Default 30 s.
    pub call_timeout: Duration,
    /// Largest reply that is taken, in bytes. Default 32 MiB: twice what a broker sends.
    pub max_reply_bytes: usize,
}

impl ClientOptions {
    #[must_use]
    pub fn new(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            connect_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(30),
            max_reply_bytes: 32 * 1024 * 1024,
        }
    }
}

/// Calls a broker. Clones share the connection; it ends with the last of them.
#[derive(Clone, Debug)]
pub struct RpcClient {
    shared: Arc<Shared>,
    call_timeout: Duration,
}

/// A call whose reply was not awaited yet. Dropping it leaves the call to its fate.
#[derive(Debug)]
pub struct PendingCall {
    connection: Arc<Connection>,
    receiver: ReplyReceiver,
    deadline: Instant,
    after: Duration,
}

impl PendingCall {
    /// Waits for the struct of the result, complete and of allowed depth.
    pub async fn reply(self) -> Result<Bytes, ClientError> {
        let Self { connection, receiver, deadline, after } = self;
        match timeout_at(deadline, connection.reply(receiver)).await {
            Ok(reply) => reply,
            Err(_) => Err(connection.timed_out(after)),
        }
    }
}

#[derive(Debug)]
struct Shared {
    addresses: Addresses,
    connect_timeout: Duration,
    max_reply_bytes: usize,
    slot: Mutex<Slot>,
    /// Attempts to connect that failed. Whoever waited for one that fails shares its error in place of a further attempt.
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    /// The address that worked last: tried first.
    preferred: Option<String>,
    /// It was left: tried last.
    left: bool,
    last_failure: Option<ClientError>,
}

impl RpcClient {
    /// Connects to nothing yet.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        let addresses = Addresses::Fixed(options.addresses.clone());
        Self::of(addresses, &options)
    }

    /// The same, with addresses that change; those of the options do not count. A call that finds none waits for one as long as it may
    /// take to connect. A connection to a broker that is not among them any more takes no new calls, unless none is left.
    #[must_use]
    pub fn following(addresses: ChangingAddresses, options: &ClientOptions) -> Self {
        Self::of(Addresses::Changing(addresses), options)
    }

    fn of(addresses: Addresses, options: &ClientOptions) -> Self {
        let ClientOptions { connect_timeout, call_timeout, max_reply_bytes, .. } = *options;
        let (slot, failures) = (Mutex::default(), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { addresses, connect_timeout, max_reply_bytes, slot, failures }), call_timeout }
    }

    /// The same connection with another time for a call.
    #[must_use]
    pub fn with_call_timeout(&self, call_timeout: Duration) -> Self {
        Self { shared: Arc::clone(&self.shared), call_timeout }
    }

    /// Calls a method.
    ///
    /// A dropped future does not stop the broker from carrying the call out; the connection stays usable.
    pub async fn call<M: Method>(&self, args: &M::Args) -> Result<M::Success, ClientError> {
        let (body, address) = self.exchange(M::NAME, M::encode_args(Protocol::Binary, args).into()).await?;
        let result =
            M::decode_result(Protocol::Binary, &body).map_err(|e| ClientError::BadReply { address, reason: e.to_string() })?;
        Ok(result?)
    }

    /// Has a broker do its own part of a call, without asking others: for calls between brokers.
    pub async fn call_owner<M: Method>(&self, args: &M::Args) -> Result<M::Success, ClientError> {
        let (body, address) = self.exchange(M::AT_OWNER, M::encode_args(Protocol::Binary, args).into()).await?;
        let result =
            M::decode_result(Protocol::Binary, &body).map_err(|e| ClientError::BadReply { address, reason: e.to_string() })?;
        Ok(result?)
    }

    /// Calls a method with arguments that are encoded already (a struct in the binary protocol), and returns the struct of the
    /// result: complete and of allowed depth. It may be a refusal, which [`Method::decode_result`] tells.
    pub async fn call_encoded(&self, method: &'static str, args: Bytes) -> Result<Bytes, ClientError> {
        self.exchange(method, args).await.map(|(body, _)| body)
    }

    /// Our end of the connection, which is made if there is none: the address by which this machine reaches the broker.
    pub async fn local_address(&self) -> Result<SocketAddr, ClientError> {
        Ok(self.connection().await?.local())
    }

    /// Leaves the broker in use, which takes connections but does not do what it is asked to: the next call begins with the address behind
    /// its own. Calls that wait for replies still get them.
    pub async fn leave_broker(&self) {
        let mut slot = self.shared.slot.lock().await;
        slot.connection = None;
        slot.left = true;
    }

    /// How many addresses there are now.
    #[must_use]
    pub fn addresses(&self) -> usize {
        self.shared.addresses.count()
    }

    /// Sends a call and returns before its reply is there. Calls that one task starts one after the other reach the broker in that
    /// order, if they share a connection.
    pub async fn start(&self, method: &'static str, args: Bytes) -> Result<PendingCall, ClientError> {
        let deadline = Instant::now() + self.call_timeout;
        loop {
            let connection = match timeout_at(deadline, self.connection()).await {
                Ok(connection) => connection?,
                Err(_) => {
                    let reason = format!("timeout after {:?}", self.call_timeout);
                    return Err(ClientError::Connect { address: self.shared.addresses.name(), reason });
                }
            };
            match timeout_at(deadline, connection.start(method, args.clone())).await {
                Ok(Ok(receiver)) => return Ok(PendingCall { connection, receiver, deadline, after: self.call_timeout }),
                // It broke between the two: nothing was sent, the next one may do.
                Ok(Err(_)) => {}
                Err(_) => return Err(connection.timed_out(self.call_timeout)),
            }
        }
    }

    /// The result's struct, and the address that it came from.
    async fn exchange(&self, method: &'static str, args: Bytes) -> Result<(Bytes, String), ClientError> {
        let mut again = true;
        loop {
            let call = self.start(method, args.clone()).await?;
            let address = call.connection.address().to_owned();
            match call.reply().await {
                Ok(body) => return Ok((body, address)),
                // The connection broke while it was idle, and that was seen too late.
                Err(ClientError::Lost { sent: false, .. }) if again => again = false,
                Err(error) => return Err(error),
            }
        }
    }

    /// The connection that works, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, ClientError> {
        let failures = self.shared.failures.load(Ordering::Acquire);
        let mut slot = self.shared.slot.lock().await;
        let usable = |c: &&Arc<Connection>| !c.is_broken() && self.shared.addresses.has(c.address());
        if let Some(connection) = slot.connection.as_ref().filter(usable) {
            return Ok(Arc::clone(connection));
        }
        if self.shared.failures.load(Ordering::Acquire) != failures
            && let Some(failure) = &slot.last_failure
        {
            return Err(failure.clone());
        }
        // Calls that wait for replies keep it open.
        slot.connection = None;
        match self.connect(slot.preferred.as_deref(), slot.left).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                slot.preferred = Some(connection.address().to_owned());
                slot.left = false;
                slot.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                slot.last_failure = Some(error.clone());
                self.shared.failures.fetch_add(1, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Tries the addresses in turn, from the preferred one on, or from the one behind it. Each may use its share of the time that is left.
    async fn connect(&self, preferred: Option<&str>, behind: bool) -> Result<Connection, ClientError> {
        let Shared { addresses, connect_timeout, max_reply_bytes, .. } = &*self.shared;
        let deadline = Instant::now() + *connect_timeout;
        let mut reasons = Vec::new();
        let mut list = addresses.to_try(deadline).await;
        if let Some(first) = list.iter().position(|address| Some(address.as_str()) == preferred) {
            let begin = (first + usize::from(behind)) % list.len();
            list.rotate_left(begin);
        }
        for (tried, address) in list.iter().enumerate() {
            let left = u32::try_from(list.len() - tried).unwrap_or(u32::MAX);
            let share = deadline.saturating_duration_since(Instant::now()) / left;
            match timeout(share, Connection::open(address, *max_reply_bytes)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => reasons.push(error.to_string()),
                Err(_) => reasons.push(format!("timeout after {share:?}")),
            }
        }
        reasons.dedup();
        let reason = if reasons.is_empty() { "there is no address".to_owned() } else { reasons.join("; ") };
        let address = if list.is_empty() { addresses.name() } else { list.join(", ") };
        Err(ClientError::Connect { address, reason })
    }
}
