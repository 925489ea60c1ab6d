//! A client of the crate, in a thread and a small runtime of its own.
//!
//! The crate connects again by itself, and its tasks outlive whoever dropped the client. Both are ended here: the runtime has one
//! thread, so when the crate says that it has begun to reconnect, this thread looks at that first, and drops the runtime before a
//! second connection can stand. The thread has no `tracing` subscriber: the crate logs the session's password, and hundreds of
//! thousands of lines when nobody answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use zookeeper_async::{WatchedEvent, WatchedEventType, ZkState, ZooKeeper};

use super::root::Root;
use super::watches::Event;
use super::wire::{Rights, Wire};

/// The crate's pause between attempts to connect; it never gets to make many.
const RETRY: Duration = Duration::from_millis(500);

/// Beyond the grace for closing, the thread ends within this time, or is left behind.
const END: Duration = Duration::from_secs(2);

/// What the client is to do.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) address: SocketAddr,
    pub(super) session_timeout: Duration,
    pub(super) root: Root,
    pub(super) rights: Rights,
}

/// What the thread hands over once it is connected.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) wire: Arc<Wire>,
    pub(super) runtime: Handle,
}

/// How the thread is told to end.
#[derive(Debug)]
struct Stop {
    /// Ask the server to end the session, if that can be written in this time.
    grace: Option<Duration>,
}

/// The thread of a client. Dropping it ends the client without asking the server to end the session.
#[derive(Debug)]
pub(super) struct Client {
    stop: oneshot::Sender<Stop>,
    /// Ends with the thread.
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
    over: watch::Receiver<bool>,
}

impl Client {
    /// Starts one; what it hands over comes when it is connected. `events` is called in the client's thread and must neither
    /// block nor panic.
    pub(super) fn start(
        task: Task,
        events: impl Fn(Event, &str) + Send + 'static,
    ) -> Result<(Self, oneshot::Receiver<Ready>), String> {
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let (lost, over) = watch::channel(false);
        let body = move || {
            let _silence = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::default());
            if let Ok(runtime) = Builder::new_current_thread().enable_io().enable_time().build() {
                runtime.block_on(live(task, events, ready, lost, stopped));
                runtime.shutdown_background();
            }
            drop::<oneshot::Sender<()>>(ending);
        };
        let thread = thread::Builder::new().name("zookeeper-client".to_owned()).spawn(body);
        let thread = thread.map_err(|error| format!("the client's thread cannot be started: {error}"))?;
        Ok((Self { stop, ended, thread, over }, is_ready))
    }

    /// Waits until the connection is over.
    pub(super) async fn over(&self) {
        // An error is the end of the thread.
        let _ = self.over.clone().wait_for(|over| *over).await;
    }

    /// Ends the client and waits for that. With a grace, the server is asked to end the session, if that can be written in this
    /// time.
    pub(super) async fn end(self, grace: Option<Duration>) {
        // An error: it has ended already.
        let _ = self.stop.send(Stop { grace });
        // An error is what tells of the end.
        if timeout(grace.unwrap_or_default() + END, self.ended).await.is_err() {
            tracing::error!("a ZooKeeper client's thread does not end; it is left behind");
        } else if self.thread.join().is_err() {
            tracing::error!("a ZooKeeper client's thread has panicked");
        }
    }
}

/// The life of the client, in its own runtime.
async fn live(
    task: Task,
    events: impl Fn(Event, &str) + Send + 'static,
    ready: oneshot::Sender<Ready>,
    lost: watch::Sender<bool>,
    mut stopped: oneshot::Receiver<Stop>,
) {
    let address = task.address.to_string();
    let root = task.root.clone();
    let watcher = move |event: WatchedEvent| forward(&event, &root, &events);
    let zk = tokio::select! {
        zk = ZooKeeper::connect_with_retry_time(&address, task.session_timeout, watcher, RETRY) => zk,
        _ = &mut stopped => return,
    };
    // The address is a number, so the crate finds nothing wrong with it.
    let Ok(zk) = zk else { return };
    // Nothing else has run in this thread since then, so no state is missed.
    let mut over = lost.subscribe();
    zk.add_listener(move |state| {
        if state != ZkState::Connected {
            lost.send_replace(true);
        }
    });
    let wire = Arc::new(Wire::new(zk, task.root, task.rights));
    if ready.send(Ready { wire: Arc::clone(&wire), runtime: Handle::current() }).is_err() {
        return;
    }
    tokio::select! {
        biased;
        _ = over.wait_for(|over| *over) => {}
        stop = stopped => if let Ok(Stop { grace: Some(grace) }) = stop {
            // It answers as soon as the request is written.
            let _ = timeout(grace, wire.close()).await;
        }
    }
}

fn forward(event: &WatchedEvent, root: &Root, events: &impl Fn(Event, &str)) {
    let kind = match event.event_type {
        WatchedEventType::NodeCreated => Event::Created,
        WatchedEventType::NodeDeleted => Event::Deleted,
        WatchedEventType::NodeDataChanged => Event::DataChanged,
        WatchedEventType::NodeChildrenChanged => Event::ChildrenChanged,
        _ => return,
    };
    if let Some(path) = event.path.as_deref().and_then(|path| root.inner(path)) {
        events(kind, path);
    }
}
