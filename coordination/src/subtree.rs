//! Making and removing more than one node.

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::{CoordinationError, Coordinator, NodeKind, check_path, child_of, parent_of};

/// Calls that are under way at the same time, at most: a ZooKeeper client stands fewer than 64.
const CONCURRENT_CALLS: usize = 32;

/// Tries against others who undo what is done, at most.
const ROUNDS: usize = 16;

/// Makes a persistent node without payload, and the parents that are missing. What is there is left as it is.
///
/// # Errors
/// Those of [`Coordinator::create`] but `NodeExists`. Parents that were made by then stay.
pub async fn create_all(coordinator: &dyn Coordinator, path: &str) -> Result<(), CoordinationError> {
    check_path(path)?;
    let mut missing = vec![path];
    // A name has two bytes or more with its slash, and is tried on the way up and on the way down.
    for _ in 0..path.len() + ROUNDS {
        let Some(&next) = missing.last() else { return Ok(()) };
        match coordinator.create(next, &[], NodeKind::Persistent).await {
            Ok(_) | Err(CoordinationError::NodeExists(_)) => drop(missing.pop()),
            Err(CoordinationError::NoNode(absent)) => match parent_of(next) {
                Some(parent) => missing.push(parent),
                None => return Err(CoordinationError::NoNode(absent)),
            },
            Err(error) => return Err(error),
        }
    }
    // Others remove what is made.
    missing.last().map_or(Ok(()), |path| Err(CoordinationError::NoNode((*path).to_owned())))
}

/// Removes a node and everything below it, children before their parents. A node that is not there, or goes meanwhile, is no error.
///
/// # Errors
/// Those of [`Coordinator::delete`] but `NoNode`; part of the subtree may be gone then. `NotEmpty` if others go on making nodes there.
pub async fn delete_tree(coordinator: &dyn Coordinator, path: &str) -> Result<(), CoordinationError> {
    for _ in 1..ROUNDS {
        match delete_once(coordinator, path).await {
            Err(CoordinationError::NotEmpty(_)) => {}
            done => return done,
        }
    }
    delete_once(coordinator, path).await
}

async fn delete_once(coordinator: &dyn Coordinator, path: &str) -> Result<(), CoordinationError> {
    let mut levels = vec![vec![path.to_owned()]];
    while let Some(level) = levels.last().filter(|level| !level.is_empty()) {
        let mut below = Vec::new();
        let lists = each(level, |path| async move { Ok((path, coordinator.children(path).await?)) }).await?;
        for (path, names) in lists {
            below.extend(names.unwrap_or_default().iter().map(|name| child_of(path, name)));
        }
        levels.push(below);
    }
    for level in levels.iter().rev() {
        each(level, |path| async move {
            match coordinator.delete(path, None).await {
                Err(CoordinationError::NoNode(_)) => Ok(()),
                done => done,
            }
        })
        .await?;
    }
    Ok(())
}

/// Carries out a call for each path, some at a time.
async fn each<'a, T, F>(paths: &'a [String], call: impl Fn(&'a str) -> F) -> Result<Vec<T>, CoordinationError>
where
    F: Future<Output = Result<T, CoordinationError>>,
{
    let mut results = Vec::with_capacity(paths.len());
    let mut calls = FuturesUnordered::new();
    for path in paths {
        if calls.len() >= CONCURRENT_CALLS
            && let Some(result) = calls.next().await
        {
            results.push(result?);
        }
        calls.push(call(path));
    }
    while let Some(result) = calls.next().await {
        results.push(result?);
    }
    Ok(results)
}
