//! What these tests share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hqueue_coordination::zookeeper::{ZooKeeperCoordinator, ZooKeeperOptions};
use hqueue_coordination::{CoordinationError, Coordinator, Node, NodeKind, Observed, SessionState, held_by, remove_leftover};
use hqueue_tests::zookeeper::ZooKeeper;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The shortest session timeout that is allowed, for tests that wait for an end.
pub(crate) const T: Duration = Duration::from_secs(3);

/// The longest that the servers here grant, for sessions that are to stand on a machine that is busy with other things.
const LONGEST: Duration = Duration::from_secs(10);

/// A server that no test harms. It ends with this process.
pub(crate) fn shared_server() -> &'static ZooKeeper {
    static SERVER: OnceLock<ZooKeeper> = OnceLock::new();
    SERVER.get_or_init(ZooKeeper::start)
}

/// A root that no other test uses.
pub(crate) fn fresh_root() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("/hqueue-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The long form of the tests is asked for.
pub(crate) fn is_long() -> bool {
    hqueue_tests::long_form("HQUEUE_LONG_ZOOKEEPER").is_some()
}

/// Options for a session that is to stand.
pub(crate) fn options(hosts: &str, root: &str) -> ZooKeeperOptions {
    with_timeout(LONGEST, hosts, root)
}

pub(crate) fn with_timeout(session_timeout: Duration, hosts: &str, root: &str) -> ZooKeeperOptions {
    let options = ZooKeeperOptions::parse(&format!("{hosts}{root}")).unwrap();
    ZooKeeperOptions { session_timeout, ..options }
}

/// A coordinator with a session.
pub(crate) async fn connect(options: ZooKeeperOptions) -> Arc<ZooKeeperCoordinator> {
    let coordinator = Arc::new(ZooKeeperCoordinator::start(options));
    coordinator.connected(PATIENCE).await.unwrap();
    coordinator
}

pub(crate) fn held(state: &SessionState) -> Option<i64> {
    match state {
        SessionState::Held { id, .. } => Some(*id),
        _ => None,
    }
}

pub(crate) fn session_id(coordinator: &dyn Coordinator) -> i64 {
    held(&coordinator.session().borrow()).expect("a session is held")
}

/// Waits for a session other than `earlier`, and returns its id.
#[track_caller]
pub(crate) fn next_session(coordinator: &dyn Coordinator, earlier: i64) -> impl Future<Output = i64> {
    let mut session = coordinator.session();
    let caller = std::panic::Location::caller();
    async move {
        let next = session.wait_for(|state| held(state).is_some_and(|id| id != earlier));
        let state = timeout(PATIENCE, next).await.unwrap_or_else(|_| panic!("{caller}: no new session"));
        held(&state.unwrap()).unwrap()
    }
}

/// Waits until the session is not held, and returns when that was.
pub(crate) async fn away(coordinator: &dyn Coordinator) -> Instant {
    let mut session = coordinator.session();
    let left = session.wait_for(|state| held(state).is_none());
    timeout(PATIENCE, left).await.expect("the session ends").unwrap();
    Instant::now()
}

/// The end of the last lease that is told before the session is over.
pub(crate) async fn last_lease(mut session: watch::Receiver<SessionState>) -> Instant {
    let mut last = None;
    loop {
        let state = *session.borrow_and_update();
        let SessionState::Held { lease_until, .. } = state else { return last.expect("a session was held") };
        last = lease_until.map(tokio::time::Instant::into_std);
        session.changed().await.unwrap();
    }
}

/// Waits until a watch shows what is wanted.
#[track_caller]
pub(crate) fn shows<T: Clone + std::fmt::Debug>(
    receiver: &mut watch::Receiver<Observed<T>>,
    wanted: impl Fn(&T) -> bool,
) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let fits = |observed: &Observed<T>| matches!(observed, Observed::Seen(seen) if wanted(seen));
        let waited = timeout(PATIENCE, receiver.wait_for(fits)).await.map(|seen| seen.unwrap().clone());
        match waited {
            Ok(Observed::Seen(seen)) => seen,
            _ => panic!("{caller}: the watch shows {:?}", receiver.borrow()),
        }
    }
}

pub(crate) fn payload_is(payload: &[u8]) -> impl Fn(&Option<Node>) -> bool {
    let payload = payload.to_vec();
    move |node| node.as_ref().is_some_and(|node| node.payload == payload)
}

/// Makes persistent nodes, many at a time.
pub(crate) async fn make_all(coordinator: &Arc<ZooKeeperCoordinator>, paths: &[String]) {
    each(coordinator, paths, |c, path| async move { c.create(&path, b"", NodeKind::Persistent).await.map(drop) }).await;
}

/// Writes nodes, many at a time.
pub(crate) async fn write_all(coordinator: &Arc<ZooKeeperCoordinator>, paths: &[String], payload: &'static [u8]) {
    each(coordinator, paths, move |c, path| async move { c.set(&path, payload, None).await.map(drop) }).await;
}

/// Carries out a call for each path, from 32 tasks.
pub(crate) async fn each<F>(
    coordinator: &Arc<ZooKeeperCoordinator>,
    paths: &[String],
    call: impl Fn(Arc<ZooKeeperCoordinator>, String) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<(), CoordinationError>> + Send,
{
    let mut tasks = JoinSet::new();
    for chunk in paths.chunks(paths.len().div_ceil(32).max(1)) {
        let (coordinator, chunk, call) = (Arc::clone(coordinator), chunk.to_vec(), call.clone());
        tasks.spawn(async move {
            for path in chunk {
                call(Arc::clone(&coordinator), path).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// What a broker does: has its ephemeral nodes in every session that it gets. Ends with its value.
#[derive(Debug)]
pub(crate) struct Registered {
    task: AbortHandle,
    /// The session in which all are registered.
    pub(crate) session: watch::Receiver<Option<i64>>,
}

impl Registered {
    pub(crate) fn keep(coordinator: &Arc<ZooKeeperCoordinator>, paths: &[String]) -> Self {
        let (done, session) = watch::channel(None);
        let task = tokio::spawn(keep_registered(Arc::clone(coordinator), paths.to_vec(), done));
        Self { task: task.abort_handle(), session }
    }

    /// Waits until all are registered in a session other than `earlier`.
    pub(crate) async fn after(&mut self, earlier: Option<i64>) -> i64 {
        let registered = self.session.wait_for(|session| session.is_some() && *session != earlier);
        // The long form registers thousands.
        let patience = if is_long() { PATIENCE * 6 } else { PATIENCE };
        timeout(patience, registered).await.expect("everything is registered").unwrap().unwrap()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep_registered(coordinator: Arc<ZooKeeperCoordinator>, paths: Vec<String>, done: watch::Sender<Option<i64>>) {
    let mut session = coordinator.session();
    let mut ours = Vec::new();
    loop {
        let id = held(&session.borrow_and_update());
        if let Some(id) = id
            && *done.borrow() != Some(id)
        {
            let earlier: Vec<i64> = ours.iter().copied().filter(|earlier| *earlier != id).collect();
            ours.push(id);
            if register(&coordinator, &paths, &earlier).await {
                done.send_replace(Some(id));
            }
        }
        if session.changed().await.is_err() {
            return;
        }
    }
}

/// `false`: the session ended meanwhile.
async fn register(coordinator: &Arc<ZooKeeperCoordinator>, paths: &[String], earlier: &[i64]) -> bool {
    let mut tasks = JoinSet::new();
    for chunk in paths.chunks(paths.len().div_ceil(24).max(1)) {
        let (coordinator, chunk, earlier) = (Arc::clone(coordinator), chunk.to_vec(), earlier.to_vec());
        tasks.spawn(async move {
            for path in chunk {
                remove_leftover(&*coordinator, &path, held_by(&earlier)).await?;
                coordinator.create(&path, b"", NodeKind::Ephemeral).await?;
            }
            Ok::<_, CoordinationError>(())
        });
    }
    let mut all = true;
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            Ok(()) => {}
            Err(error) if error.is_retryable() => all = false,
            Err(error) => panic!("{error}"),
        }
    }
    all
}
