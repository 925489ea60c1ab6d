//! Making an ephemeral node of ours, also where an earlier session of ours has left one.

use crate::{CoordinationError, Coordinator, Node, NodeKind, remove_leftover};

/// Tries against others who make and remove the node meanwhile.
const ROUNDS: usize = 8;

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The node is there and this session of ours holds it.
    Held { session: i64 },
    /// Somebody else holds it.
    Taken(Node),
}

/// Makes an ephemeral node. `is_left` tells whether a node that is there was left by an earlier session of ours, which does nothing any
/// more: it is removed first, with the care of [`remove_leftover`].
///
/// # Errors
/// Those of the coordinator; `NodeExists` if others make and remove the node all the time.
pub async fn claim(
    coordinator: &dyn Coordinator,
    path: &str,
    payload: &[u8],
    is_left: impl Fn(&Node) -> bool,
) -> Result<Claim, CoordinationError> {
    for _ in 0..ROUNDS {
        match coordinator.create(path, payload, NodeKind::Ephemeral).await {
            Ok(created) => match created.session {
                Some(session) => return Ok(Claim::Held { session }),
                None => return Err(CoordinationError::Failed(format!("{path} was made without a session"))),
            },
            Err(CoordinationError::NodeExists(_)) => {}
            Err(error) => return Err(error),
        }
        let Some(node) = coordinator.get(path).await? else { continue };
        if !is_left(&node) {
            return Ok(Claim::Taken(node));
        }
        // Whatever came of it, another look tells.
        remove_leftover(coordinator, path, &is_left).await?;
    }
    Err(CoordinationError::NodeExists(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hqueue_storage::disk::RealDisk;

    use super::*;
    use crate::embedded::EmbeddedCoordinator;

    #[tokio::test]
    async fn a_node_that_was_left_makes_room_and_another_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap();
        coordinator.create("/n", b"mine", NodeKind::Ephemeral).await.unwrap();
        let taken = claim(&coordinator, "/n", b"new", |_| false).await.unwrap();
        assert!(matches!(taken, Claim::Taken(node) if node.payload == b"mine"));
        let held = claim(&coordinator, "/n", b"new", |node| node.payload == b"mine").await.unwrap();
        assert!(matches!(held, Claim::Held { .. }));
        let node = coordinator.get("/n").await.unwrap().unwrap();
        assert_eq!((node.payload.as_slice(), node.version), (&b"new"[..], 0));
    }
}
