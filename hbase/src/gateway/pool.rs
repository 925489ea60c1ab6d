//! Connections to the gateways: one call at a time on each, to whichever gateway works.
//!
//! A gateway closes connections that are idle for a minute. A call looks for that first; one that leaves just then ends as
//! [`GatewayError::Unanswered`], and [`Gateways::repeat`] sends it again.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connection::{CallError, Connection};
use super::reply::check;
use super::{GatewayError, GatewayOptions};

/// The first wait before a call is repeated; it doubles up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// All gateways. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Gateways {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: GatewayOptions,
    permits: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    gateways: Vec<Gateway>,
    /// Whose turn it is.
    next: usize,
}

#[derive(Debug, Default)]
struct Gateway {
    /// Connections without a call.
    idle: Vec<Connection>,
    /// It failed, and is passed over until then while another works.
    rests_until: Option<Instant>,
}

impl Gateways {
    /// Connects to nothing yet.
    #[must_use]
    pub fn new(options: GatewayOptions) -> Self {
        let gateways = options.addresses.iter().map(|_| Gateway::default()).collect();
        let permits = Semaphore::new(options.connections.max(1));
        Self { shared: Arc::new(Shared { permits, state: Mutex::new(State { gateways, next: 0 }), options }) }
    }

    #[must_use]
    pub fn options(&self) -> &GatewayOptions {
        &self.shared.options
    }

    /// Calls once: another gateway is tried only if nothing was sent. Returns the struct of the result, which is no error of HBase.
    ///
    /// Safe to drop: the connection of a call that was under way is closed.
    pub(crate) async fn call(&self, method: &'static str, args: Bytes) -> Result<Bytes, GatewayError> {
        let Ok(_permit) = self.shared.permits.acquire().await else {
            return Err(GatewayError::Unreachable { reason: "the store is closed".to_owned() });
        };
        let mut reasons = Vec::new();
        for gateway in self.order() {
            let mut connection = match self.connection(gateway).await {
                Ok(connection) => connection,
                Err(error) => {
                    self.fails(gateway);
                    reasons.push(format!("{}: {error}", self.address(gateway)));
                    continue;
                }
            };
            let patience = self.shared.options.call_timeout;
            return match timeout(patience, connection.call(method, &args)).await {
                Ok(Ok(body)) => {
                    self.works(gateway, connection);
                    check(body)
                }
                Ok(Err(CallError::Exception(reason))) => {
                    self.works(gateway, connection);
                    Err(GatewayError::Foreign { reason: format!("{}: {reason}", self.address(gateway)) })
                }
                Ok(Err(CallError::Broken(reason))) => {
                    // Its other connections may have ended as well.
                    self.fails(gateway);
                    Err(GatewayError::Unanswered { reason: format!("{}: {reason}", self.address(gateway)) })
                }
                Err(_) => {
                    self.fails(gateway);
                    Err(GatewayError::Unanswered { reason: format!("{}: none within {patience:?}", self.address(gateway)) })
                }
            };
        }
        Err(GatewayError::Unreachable { reason: reasons.join("; ") })
    }

    /// Calls until there is an answer, or the deadline has come: only for what may be done twice. The last error is returned; after it,
    /// the call may still be carried out if any of its errors says so.
    pub(crate) async fn repeat(&self, method: &'static str, args: Bytes, deadline: Instant) -> Result<Bytes, GatewayError> {
        let mut wait = FIRST_WAIT;
        let mut uncertain = None;
        loop {
            let error = match timeout_at(deadline, self.call(method, args.clone())).await {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(error)) => error,
                Err(_) => GatewayError::Unanswered { reason: "the deadline has come".to_owned() },
            };
            let jittered = wait.mul_f64(0.8 + 0.4 * fastrand::f64());
            if error.may_have_been_carried_out() && error.is_retryable() {
                uncertain = Some(error.clone());
            }
            if !error.is_retryable() || Instant::now() + jittered >= deadline {
                return Err(if error.is_retryable() { uncertain.unwrap_or(error) } else { error });
            }
            tracing::debug!(method, %error, "the call is repeated");
            sleep(jittered).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All gateways in turn, those that rest last.
    fn order(&self) -> Vec<usize> {
        let mut state = self.lock();
        let count = state.gateways.len();
        let now = Instant::now();
        state.next = state.next.wrapping_add(1);
        let mut order: Vec<usize> = (0..count).map(|n| (state.next.wrapping_add(n)) % count.max(1)).collect();
        order.sort_by_key(|g| state.gateways.get(*g).is_some_and(|g| g.rests_until.is_some_and(|until| until > now)));
        order
    }

    fn address(&self, gateway: usize) -> &str {
        self.shared.options.addresses.get(gateway).map_or("", String::as_str)
    }

    /// An idle connection that lives, or a new one.
    async fn connection(&self, gateway: usize) -> io::Result<Connection> {
        let idle = || self.lock().gateways.get_mut(gateway).and_then(|g| g.idle.pop());
        while let Some(connection) = idle() {
            if !connection.has_ended() {
                return Ok(connection);
            }
        }
        let options = &self.shared.options;
        Connection::open(self.address(gateway), options.connect_timeout, options.max_reply_bytes).await
    }

    fn works(&self, gateway: usize, connection: Connection) {
        let mut rested = false;
        if let Some(gateway) = self.lock().gateways.get_mut(gateway) {
            gateway.idle.push(connection);
            rested = gateway.rests_until.take().is_some();
        }
        if rested {
            tracing::info!(gateway = self.address(gateway), "a gateway of HBase answers again");
        }
    }

    fn fails(&self, gateway: usize) {
        let rests_until = Some(Instant::now() + self.shared.options.rest);
        let mut worked = false;
        if let Some(gateway) = self.lock().gateways.get_mut(gateway) {
            worked = gateway.rests_until.is_none();
            gateway.rests_until = rests_until;
            gateway.idle.clear();
        }
        if worked {
            tracing::warn!(
                gateway = self.address(gateway),
                "a gateway of HBase does not answer: it is passed over while another does"
            );
        }
    }
}
