//! Connections for fetches: each has one to itself while it is under way.

use std::sync::{Arc, Mutex, PoisonError};

use hqueue_protocol::client::RpcClient;

use crate::hqueue::HQueue;

/// So many that are not in use are kept.
const KEPT: usize = 16;

/// Makes connections, and keeps some for the next fetch.
#[derive(Debug)]
pub(super) struct Connections {
    hqueue: HQueue,
    idle: Mutex<Vec<RpcClient>>,
}

/// A connection that nobody else uses. Dropped with a call under way, it is closed: the broker waits no longer for this call's sake.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) client: RpcClient,
    from: Arc<Connections>,
}

impl Connections {
    pub(super) fn new(hqueue: HQueue) -> Self {
        Self { hqueue, idle: Mutex::default() }
    }

    pub(super) fn take(self: &Arc<Self>) -> Taken {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Taken { client: idle.unwrap_or_else(|| self.hqueue.new_client()), from: Arc::clone(self) }
    }
}

impl Taken {
    /// Its calls are answered: it can be used again.
    pub(super) fn give_back(self) {
        let mut idle = self.from.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(self.client);
        }
    }
}
