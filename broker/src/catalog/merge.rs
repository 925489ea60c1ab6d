//! One status out of what several brokers say.

use std::collections::BTreeMap;

use hqueue_protocol::generated::{TQueueStatus, TQueueSummary, TSubscriptionStatus};

/// The worst first: what is shown when brokers see a subscription differently.
const STATES: [&str; 8] = ["broken", "blocked", "failing", "retrying", "paused", "active", "waiting", ""];

/// Adds what another broker says of a queue: each answers for its own partitions.
pub fn merge_statuses(status: &mut TQueueStatus, other: TQueueStatus) {
    let online = other.partitions.unwrap_or_default().into_iter().filter(|p| p.state.as_deref() == Some("online"));
    let partitions = status.partitions.get_or_insert_default();
    for theirs in online {
        if let Some(ours) = partitions.iter_mut().find(|p| p.partition == theirs.partition) {
            *ours = theirs;
        }
    }
    let mut by_name: BTreeMap<Vec<u8>, TSubscriptionStatus> =
        status.subscriptions.take().unwrap_or_default().into_iter().map(|s| (s.name.clone().unwrap_or_default(), s)).collect();
    for theirs in other.subscriptions.unwrap_or_default() {
        let name = theirs.name.clone().unwrap_or_default();
        match by_name.remove(&name) {
            Some(ours) => drop(by_name.insert(name, merge_subscription(ours, theirs))),
            None => drop(by_name.insert(name, theirs)),
        }
    }
    status.subscriptions = Some(by_name.into_values().collect());
}

fn merge_subscription(a: TSubscriptionStatus, b: TSubscriptionStatus) -> TSubscriptionStatus {
    // A broker that has no partition of it knows only that it exists.
    let knows =
        |s: &TSubscriptionStatus| s.checkpoints.as_ref().is_some_and(|c| !c.is_empty()) || s.state.as_deref() == Some("broken");
    match (knows(&a), knows(&b)) {
        (_, false) => return a,
        (false, true) => return b,
        (true, true) => {}
    }
    let newer = if b.last_error_time > a.last_error_time { &b } else { &a };
    let (last_error, last_error_time) = (newer.last_error.clone(), newer.last_error_time.clone());
    let sum = |a: Option<i64>, b: Option<i64>| Some(a.unwrap_or_default().saturating_add(b.unwrap_or_default()));
    let rank = |state: &Option<String>| STATES.iter().position(|s| Some(*s) == state.as_deref()).unwrap_or(STATES.len());
    let state = if rank(&b.state) < rank(&a.state) { b.state } else { a.state };
    TSubscriptionStatus {
        name: a.name,
        state,
        endpoints: union(a.endpoints, b.endpoints),
        topics: union(a.topics, b.topics),
        lag_messages: sum(a.lag_messages, b.lag_messages),
        lag_exact: Some(a.lag_exact.unwrap_or(true) && b.lag_exact.unwrap_or(true)),
        lag_seconds: a.lag_seconds.max(b.lag_seconds),
        in_flight: sum(a.in_flight, b.in_flight),
        attempts: a.attempts.max(b.attempts),
        delivered: sum(a.delivered, b.delivered),
        failed: sum(a.failed, b.failed),
        expired_messages: sum(a.expired_messages, b.expired_messages),
        dead_lettered: sum(a.dead_lettered, b.dead_lettered),
        last_error,
        last_error_time,
        checkpoints: {
            let mut all = a.checkpoints.unwrap_or_default();
            all.extend(b.checkpoints.unwrap_or_default());
            all.sort_by_key(|c| c.partition);
            Some(all)
        },
    }
}

fn union<T: Ord>(a: Option<Vec<T>>, b: Option<Vec<T>>) -> Option<Vec<T>> {
    let mut all = a.unwrap_or_default();
    all.extend(b.unwrap_or_default());
    all.sort();
    all.dedup();
    Some(all)
}

/// Adds what another broker says of the queues that it knows.
pub fn merge_summaries(summaries: &mut [TQueueSummary], others: Vec<TQueueSummary>) {
    for theirs in others {
        if let Some(ours) = summaries.iter_mut().find(|s| s.name == theirs.name) {
            ours.lag_messages =
                Some(ours.lag_messages.unwrap_or_default().saturating_add(theirs.lag_messages.unwrap_or_default()));
            ours.subscriptions = ours.subscriptions.max(theirs.subscriptions);
        }
    }
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::generated::{TCheckpoint, TPartitionStatus};

    use super::*;

    fn subscription(state: &str, lag: i64, partition: Option<i16>) -> TSubscriptionStatus {
        TSubscriptionStatus {
            name: Some(b"s".to_vec()),
            state: Some(state.to_owned()),
            lag_messages: Some(lag),
            checkpoints: Some(partition.map(|p| TCheckpoint { partition: Some(p), id: None }).into_iter().collect()),
            ..Default::default()
        }
    }

    fn status(online: i16, subscription: TSubscriptionStatus) -> TQueueStatus {
        let partition = |p| TPartitionStatus {
            partition: Some(p),
            state: Some(if p == online { "online" } else { "offline" }.to_owned()),
            ..Default::default()
        };
        TQueueStatus {
            partitions: Some((0..2).map(partition).collect()),
            subscriptions: Some(vec![subscription]),
            ..Default::default()
        }
    }

    #[test]
    fn each_broker_answers_for_its_partitions() {
        let mut merged = status(0, subscription("active", 2, Some(0)));
        merge_statuses(&mut merged, status(1, subscription("retrying", 3, Some(1))));
        assert!(merged.partitions.unwrap().iter().all(|p| p.state.as_deref() == Some("online")));
        let merged = merged.subscriptions.unwrap().remove(0);
        assert_eq!((merged.state.as_deref(), merged.lag_messages), (Some("retrying"), Some(5)));
        assert_eq!(merged.checkpoints.unwrap().len(), 2);
    }

    #[test]
    fn who_has_nothing_of_a_subscription_has_no_say() {
        let mut merged = status(0, subscription("waiting", 0, None));
        merge_statuses(&mut merged, status(1, subscription("active", 3, Some(1))));
        assert_eq!(merged.subscriptions.unwrap().remove(0).state.as_deref(), Some("active"));
    }
}
