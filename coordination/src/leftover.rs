//! What an earlier session of ours left behind.

use crate::{CoordinationError as E, Coordinator, Node};

/// What became of a node that an earlier session may have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// There is no such node, or there is none any more.
    Gone,
    /// It belongs to somebody else, or to nobody.
    Others,
}

/// Removes an ephemeral node if `is_ours` says that it belongs to an earlier session of ours, which is over.
///
/// Between a look and a delete the session may expire and a rival make the node anew: it would have the version that was looked
/// at, 0. So the node is written first, and looked at again: then it has version 1 or more, which a new node has not.
///
/// The rival may then have our payload in its node (it has lost nothing else): who holds a node that others read watches it, and
/// writes it again when it finds another payload there.
///
/// # Errors
/// Those of [`Coordinator::get`], [`set`](Coordinator::set) and [`delete`](Coordinator::delete).
pub async fn remove_leftover(coordinator: &dyn Coordinator, path: &str, is_ours: impl Fn(&Node) -> bool) -> Result<Leftover, E> {
    let Some(found) = coordinator.get(path).await? else { return Ok(Leftover::Gone) };
    if !is_ours(&found) {
        return Ok(Leftover::Others);
    }
    let version = match coordinator.set(path, &found.payload, Some(found.version)).await {
        Ok(version) => version,
        Err(E::NoNode(_)) => return Ok(Leftover::Gone),
        Err(E::BadVersion { .. }) => return Ok(Leftover::Others),
        Err(error) => return Err(error),
    };
    match coordinator.get(path).await? {
        None => return Ok(Leftover::Gone),
        Some(written) if !is_ours(&written) || written.version != version => return Ok(Leftover::Others),
        Some(_) => {}
    }
    match coordinator.delete(path, Some(version)).await {
        Ok(()) | Err(E::NoNode(_)) => Ok(Leftover::Gone),
        Err(E::BadVersion { .. }) => Ok(Leftover::Others),
        Err(error) => Err(error),
    }
}

/// Tells the nodes of these sessions.
pub fn held_by(sessions: &[i64]) -> impl Fn(&Node) -> bool {
    move |node| node.owner_session.is_some_and(|owner| sessions.contains(&owner))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use hqueue_storage::disk::SimulatedDisk;
    use tokio::sync::watch;

    use super::*;
    use crate::embedded::EmbeddedCoordinator;
    use crate::{BoxFuture, Created, NodeKind, Observed, SessionState};

    /// When the earlier session ends, and a rival takes its place.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Moment {
        BeforeTheWrite,
        BeforeTheDelete,
    }

    /// Our coordinator, with a rival that comes at the worst moment.
    #[derive(Debug)]
    struct Raced {
        ours: EmbeddedCoordinator,
        earlier: EmbeddedCoordinator,
        rival: EmbeddedCoordinator,
        moment: Moment,
        rival_comes: bool,
        done: AtomicBool,
    }

    impl Raced {
        fn new(moment: Moment, rival_comes: bool) -> Self {
            let ours = EmbeddedCoordinator::open(Arc::new(SimulatedDisk::new()), Path::new("/c")).unwrap();
            let (earlier, rival) = (ours.open_session().unwrap(), ours.open_session().unwrap());
            Self { ours, earlier, rival, moment, rival_comes, done: AtomicBool::new(false) }
        }

        async fn at(&self, moment: Moment) {
            if moment == self.moment && !self.done.swap(true, Ordering::Relaxed) {
                self.earlier.close().await;
                if self.rival_comes {
                    self.rival.create("/owner", b"rival", NodeKind::Ephemeral).await.unwrap();
                }
            }
        }
    }

    impl Coordinator for Raced {
        fn create<'a>(&'a self, path: &'a str, payload: &'a [u8], kind: NodeKind) -> BoxFuture<'a, Result<Created, E>> {
            self.ours.create(path, payload, kind)
        }

        fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Node>, E>> {
            self.ours.get(path)
        }

        fn set<'a>(&'a self, path: &'a str, payload: &'a [u8], version: Option<i32>) -> BoxFuture<'a, Result<i32, E>> {
            Box::pin(async move {
                self.at(Moment::BeforeTheWrite).await;
                self.ours.set(path, payload, version).await
            })
        }

        fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), E>> {
            Box::pin(async move {
                self.at(Moment::BeforeTheDelete).await;
                self.ours.delete(path, version).await
            })
        }

        fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, E>> {
            self.ours.children(path)
        }

        fn watch_node(&self, path: &str) -> watch::Receiver<Observed<Option<Node>>> {
            self.ours.watch_node(path)
        }

        fn watch_children(&self, path: &str) -> watch::Receiver<Observed<Option<Vec<String>>>> {
            self.ours.watch_children(path)
        }

        fn session(&self) -> watch::Receiver<SessionState> {
            self.ours.session()
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            self.ours.close()
        }
    }

    #[tokio::test]
    async fn a_rival_that_comes_meanwhile_keeps_its_node() {
        for moment in [Moment::BeforeTheWrite, Moment::BeforeTheDelete] {
            for (rival_comes, outcome) in [(true, Leftover::Others), (false, Leftover::Gone)] {
                let raced = Raced::new(moment, rival_comes);
                let made = raced.earlier.create("/owner", b"ours", NodeKind::Ephemeral).await.unwrap();
                let earlier = made.session.unwrap();
                assert_eq!(remove_leftover(&raced, "/owner", held_by(&[earlier])).await, Ok(outcome), "{moment:?}");
                let owner = raced.ours.get("/owner").await.unwrap().map(|node| node.owner_session);
                let SessionState::Held { id: rival, .. } = *raced.rival.session().borrow() else { panic!("no session") };
                assert_eq!(owner, rival_comes.then_some(Some(rival)), "{moment:?}");
            }
        }
    }

    #[tokio::test]
    async fn only_what_an_earlier_session_made_is_removed() {
        let raced = Raced::new(Moment::BeforeTheWrite, false);
        let made = raced.rival.create("/rivals", b"", NodeKind::Ephemeral).await.unwrap();
        raced.ours.create("/persistent", b"", NodeKind::Persistent).await.unwrap();
        let earlier = [made.session.unwrap() ^ 1];
        for path in ["/rivals", "/persistent"] {
            assert_eq!(remove_leftover(&raced.ours, path, held_by(&earlier)).await, Ok(Leftover::Others));
            assert_eq!(raced.ours.get(path).await.unwrap().map(|node| node.version), Some(0), "it is not even written");
        }
        assert_eq!(remove_leftover(&raced.ours, "/nothing", held_by(&earlier)).await, Ok(Leftover::Gone));
    }
}
