//! What is wrong, a line each: an operator sees it at a glance, below the tables.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hqueue::{ClusterStatus, PartitionStatus, SubscriptionStatus};

use super::status::{OldestLetter, rfc3339};
use super::{escaped, partitions};

/// Prints the lines under a heading; nothing if there are none.
pub(super) fn write(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nin trouble:")?;
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}

/// Partitions that nobody serves, by the broker that has them.
pub(super) fn of_partitions(all: &[PartitionStatus]) -> Vec<String> {
    let mut by_owner: BTreeMap<&str, Vec<i16>> = BTreeMap::new();
    for partition in all.iter().filter(|partition| partition.state == "offline") {
        by_owner.entry(&partition.owner).or_default().push(partition.partition);
    }
    let line = |(owner, numbers): (&str, Vec<i16>)| format!("{}: offline, {}", partitions(&numbers), whose(owner));
    by_owner.into_iter().map(line).collect()
}

/// Who has a partition that is offline.
pub(crate) fn whose(owner: &str) -> String {
    if owner.is_empty() { "no broker has it yet".to_owned() } else { format!("with broker {}", escaped(owner.as_bytes())) }
}

/// Brokers that are away, and queues with partitions that nobody serves.
pub(super) fn of_cluster(status: &ClusterStatus) -> Vec<String> {
    let away = status.brokers.iter().filter(|broker| broker.state != "online");
    let brokers = away.map(|broker| format!("broker {}: {}", broker.name, broker.state));
    let offline = status.queues.iter().filter(|queue| queue.offline > 0);
    let queues =
        offline.map(|queue| format!("queue {}: {} of {} partitions offline", queue.name, queue.offline, queue.partitions));
    brokers.chain(queues).collect()
}

/// Subscribers that do not get on, each with its last error. `place` stands behind their names.
pub(super) fn of_subscribers(subscribers: &[SubscriptionStatus], place: &str) -> Vec<String> {
    subscribers.iter().filter_map(|s| Some(format!("subscriber {}{place}: {}", s.name, what(s)?))).collect()
}

/// Dead letters, which wait for somebody to redrive or to drop them.
pub(super) fn of_letters(queue: &str, letters: &[OldestLetter]) -> Vec<String> {
    let line = |(name, oldest): &OldestLetter| match oldest {
        Ok(letter) => {
            let (since, error) = (rfc3339(letter.since_ms), escaped(letter.last_error.as_bytes()));
            format!("subscriber {name}: has dead letters, see dlq list {queue} {name}; the oldest since {since}: {error}")
        }
        Err(error) => format!("subscriber {name}: its dead letters are not known: {}", escaped(error.to_string().as_bytes())),
    };
    letters.iter().map(line).collect()
}

/// A state that needs somebody.
pub(super) fn is_in_trouble(s: &SubscriptionStatus) -> bool {
    what(s).is_some()
}

fn what(s: &SubscriptionStatus) -> Option<String> {
    let lag = s.lag_messages;
    let state = match s.state.as_str() {
        "blocked" => format!("blocked by a message after {} attempts, {lag} messages wait; resume tries it again", s.attempts),
        "failing" => format!("failing at everything, attempt {}, {lag} messages wait", s.attempts),
        "retrying" => format!("retrying, attempt {}, {lag} messages wait", s.attempts),
        "broken" => "broken: its registration cannot be read".to_owned(),
        "waiting" if lag > 0 => return Some(format!("no endpoint, {lag} messages wait")),
        _ => return None,
    };
    Some(match &s.last_error {
        Some(error) => format!("{state}; last error {}: {}", time_of_error(s), escaped(error.as_bytes())),
        None => state,
    })
}

/// When the last error was.
pub(super) fn time_of_error(s: &SubscriptionStatus) -> &str {
    s.last_error_time.as_deref().unwrap_or("at an unknown time")
}

#[cfg(test)]
mod tests {
    use hqueue::{BrokerStatus, QueueSummary};

    use super::*;

    fn subscriber(state: &str, error: Option<&str>) -> SubscriptionStatus {
        SubscriptionStatus {
            name: "s".to_owned(),
            state: state.to_owned(),
            lag_messages: 7,
            attempts: 16,
            last_error: error.map(str::to_owned),
            last_error_time: error.map(|_| "2026-03-29T02:30:00Z".to_owned()),
            ..SubscriptionStatus::default()
        }
    }

    #[test]
    fn every_state_that_needs_somebody_has_its_line() {
        for (state, says) in [
            ("blocked", "blocked by a message after 16 attempts, 7 messages wait"),
            ("failing", "failing at everything, attempt 16, 7 messages wait"),
            ("retrying", "retrying, attempt 16, 7 messages wait"),
            ("broken", "broken: its registration cannot be read"),
        ] {
            let lines = of_subscribers(&[subscriber(state, Some("not\ntoday"))], " of queue q");
            assert!(lines[0].starts_with(&format!("subscriber s of queue q: {says}")), "{lines:?}");
            assert!(lines[0].ends_with("; last error 2026-03-29T02:30:00Z: not\\ntoday"), "{lines:?}");
            assert!(!of_subscribers(&[subscriber(state, None)], "")[0].contains("last error"));
        }
        assert_eq!(of_subscribers(&[subscriber("waiting", Some("old"))], ""), ["subscriber s: no endpoint, 7 messages wait"]);
        for state in ["active", "paused"] {
            assert!(of_subscribers(&[subscriber(state, Some("old"))], "").is_empty());
        }
        let idle = SubscriptionStatus { lag_messages: 0, ..subscriber("waiting", None) };
        assert!(!is_in_trouble(&idle));
    }

    #[test]
    fn what_is_offline_stands_with_its_broker() {
        let partition = |partition, owner: &str, state: &str| PartitionStatus {
            partition,
            owner: owner.to_owned(),
            state: state.to_owned(),
            ..PartitionStatus::default()
        };
        let all = [("a", "offline"), ("a", "offline"), ("b", "online"), ("", "offline"), ("a", "offline")];
        let all: Vec<_> = (0..).zip(all).map(|(n, (owner, state))| partition(n, owner, state)).collect();
        let lines = of_partitions(&all);
        assert_eq!(lines, ["partition 3: offline, no broker has it yet", "partitions 0-1, 4: offline, with broker a"]);
    }

    #[test]
    fn a_cluster_names_brokers_and_queues() {
        let status = ClusterStatus {
            brokers: ["online", "offline"]
                .map(|state| BrokerStatus { name: format!("is-{state}"), state: state.to_owned(), ..BrokerStatus::default() })
                .to_vec(),
            queues: [0, 2]
                .map(|offline| QueueSummary { name: format!("q{offline}"), partitions: 4, offline, ..QueueSummary::default() })
                .to_vec(),
            trouble: None,
        };
        assert_eq!(of_cluster(&status), ["broker is-offline: offline", "queue q2: 2 of 4 partitions offline"]);
    }

    #[test]
    fn nothing_wrong_prints_nothing() {
        let mut out = Vec::new();
        write(&mut out, &[]).unwrap();
        assert!(out.is_empty());
        write(&mut out, &["x".to_owned()]).unwrap();
        assert_eq!(out, b"\nin trouble:\n  x\n");
    }
}
