//! What the commands of a shell share: one connection.

use std::sync::Arc;

use hqueue::HQueue;
use tokio::sync::OnceCell;

use crate::connection::Connection;
use crate::failure::Failure;

tokio::task_local! {
    /// The shell that a command runs in. Commands know nothing of it: they open their connection as always.
    static CURRENT: Session;
}

/// A shell's connection, made by the first command that needs it.
#[derive(Clone, Debug)]
pub(crate) struct Session(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    connection: Connection,
    /// Commands come from standard input.
    reads_commands: bool,
    hqueue: OnceCell<HQueue>,
}

impl Session {
    pub(super) fn new(connection: Connection, reads_commands: bool) -> Self {
        Self(Arc::new(Shared { connection, reads_commands, hqueue: OnceCell::new() }))
    }

    /// That of the shell in which this runs, if it runs in one.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs a command in it.
    pub(super) async fn run<T>(&self, command: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), command).await
    }

    /// A line may name another broker.
    pub(crate) fn serves(&self, wanted: &Connection) -> bool {
        let Connection { connect, zookeeper_auth, .. } = &self.0.connection;
        wanted.connect == *connect && (wanted.zookeeper_auth.is_none() || wanted.zookeeper_auth == *zookeeper_auth)
    }

    pub(crate) async fn open(&self) -> Result<HQueue, Failure> {
        self.0.hqueue.get_or_try_init(|| self.0.connection.make()).await.cloned()
    }

    /// Standard input is not for messages.
    pub(crate) fn reads_commands(&self) -> bool {
        self.0.reads_commands
    }
}
