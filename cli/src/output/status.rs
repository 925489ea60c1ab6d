//! Queues and subscriptions, as tables for people or as JSON.

use std::io::{self, Write};

use hqueue::{ClusterStatus, DeadLetter, Error, MessageId, QueueDescription, QueueStatus, SubscriptionStatus};

use super::table::Table;
use super::{escaped, json, print_json, say, trouble};
use crate::connection::Format;
use crate::failure::Failure;

/// Milliseconds since 1970 as a time that people read.
pub(super) fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}

/// `list`.
pub(crate) fn print_queues(format: Format, queues: &[QueueDescription]) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&json::Queues::from(queues));
    }
    let mut table = Table::new(&["NAME", ">PARTITIONS", ">TTL SECONDS", "STATE"]);
    for q in queues {
        table.row(vec![q.name.clone(), q.partitions.to_string(), q.ttl_seconds.to_string(), q.state.clone()]);
    }
    Ok(table.write(&mut io::stdout().lock())?)
}

/// `describe`.
pub(crate) fn print_description(format: Format, queue: &QueueDescription) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&json::Described::from(queue));
    }
    let mut out = io::stdout().lock();
    writeln!(out, "name         {}", queue.name)?;
    writeln!(out, "partitions   {}", queue.partitions)?;
    writeln!(out, "ttl seconds  {}", queue.ttl_seconds)?;
    writeln!(out, "state        {}", queue.state)?;
    writeln!(out, "created      {}", rfc3339(queue.created_ms))?;
    if let Some(max_bytes) = queue.max_bytes {
        let kept = if queue.keep_unread == Some(true) { ", unread messages are kept" } else { "" };
        writeln!(out, "max bytes    {max_bytes}, when full: {}{kept}", queue.when_full.as_deref().unwrap_or("reject"))?;
    }
    for (key, value) in queue.configuration.iter().chain(&queue.stored) {
        writeln!(out, "{key} = {}", escaped(value.as_bytes()))?;
    }
    Ok(())
}

/// The subscribers of a queue, or why they are not known.
pub(crate) type Subscribers = (String, Result<Vec<SubscriptionStatus>, Error>);

/// A subscriber with dead letters, and the oldest of these, or why it is not known.
pub(crate) type OldestLetter = (String, Result<DeadLetter, Error>);

/// `status --format json` without a queue.
pub(crate) fn print_cluster_json(status: &ClusterStatus) -> Result<(), Failure> {
    print_json(&json::Cluster::from(status))
}

/// `status` without a queue.
pub(crate) fn print_cluster_text(status: &ClusterStatus, subscribers: &[Subscribers]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if let Some(trouble) = &status.trouble {
        say(format_args!("hqueue: {}", escaped(trouble.as_bytes())));
    }
    let mut brokers = Table::new(&["BROKER", "ADDRESS", "STATE", ">PARTITIONS", "SESSION", ""]);
    for b in &status.brokers {
        let partitions = b.partitions.map_or_else(|| "all".to_owned(), |n| n.to_string());
        let session = or_dash(b.session.as_deref().unwrap_or_default());
        let role = if b.balancer { "balancer" } else { "" };
        brokers.row(vec![b.name.clone(), or_dash(&b.address), b.state.clone(), partitions, session, role.to_owned()]);
    }
    brokers.write(&mut out)?;
    let mut queues = Table::new(&["QUEUE", ">PARTITIONS", ">OFFLINE", ">SUBSCRIPTIONS", ">IN TROUBLE", ">LAG", ">DEAD-LETTERED"]);
    let mut lines = trouble::of_cluster(status);
    for q in &status.queues {
        let [partitions, offline, subscriptions] = [q.partitions, q.offline, q.subscriptions].map(|n| n.to_string());
        let known = subscribers.iter().find(|(queue, _)| *queue == q.name).map(|(_, known)| known);
        let (in_trouble, dead_lettered) = match known {
            None => ("0".to_owned(), "0".to_owned()),
            Some(Ok(all)) => {
                lines.extend(trouble::of_subscribers(all, &format!(" of queue {}", q.name)));
                let in_trouble = all.iter().filter(|s| trouble::is_in_trouble(s)).count();
                (in_trouble.to_string(), all.iter().map(|s| s.dead_lettered).sum::<i64>().to_string())
            }
            Some(Err(error)) => {
                lines.push(format!("queue {}: its subscribers are not known: {}", q.name, escaped(error.to_string().as_bytes())));
                ("?".to_owned(), "?".to_owned())
            }
        };
        let lag = q.lag_messages.to_string();
        queues.row(vec![q.name.clone(), partitions, offline, subscriptions, in_trouble, lag, dead_lettered]);
    }
    writeln!(out)?;
    queues.write(&mut out)?;
    Ok(trouble::write(&mut out, &lines)?)
}

/// `status QUEUE`.
pub(crate) fn print_queue_status(format: Format, queue: &QueueStatus, letters: &[OldestLetter]) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&json::Status::from(queue));
    }
    let mut out = io::stdout().lock();
    writeln!(out, "queue {}, {}\n", queue.name, queue.state)?;
    let mut table = Table::new(&[">PARTITION", "OWNER", "STATE", "FIRST ID", "LAST ID", ">MESSAGES", ">BYTES"]);
    let id = |id: Option<MessageId>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    for p in &queue.partitions {
        let (first, last) = (id(p.first_id), id(p.last_id));
        let (messages, bytes) = (p.messages.to_string(), p.bytes.to_string());
        table.row(vec![p.partition.to_string(), p.owner.clone(), p.state.clone(), first, last, messages, bytes]);
    }
    table.write(&mut out)?;
    writeln!(out)?;
    Ok(write_subscriptions(
        &mut out,
        &queue.subscriptions,
        trouble::of_partitions(&queue.partitions),
        trouble::of_letters(&queue.name, letters),
    )?)
}

/// `list_subscribers`.
pub(crate) fn print_subscribers(format: Format, subscribers: &[SubscriptionStatus]) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&json::Subscribers::from(subscribers));
    }
    Ok(write_subscriptions(&mut io::stdout().lock(), subscribers, Vec::new(), Vec::new())?)
}

/// What else is wrong stands before and behind what is wrong with them.
fn write_subscriptions(
    out: &mut impl Write,
    subscriptions: &[SubscriptionStatus],
    before: Vec<String>,
    behind: Vec<String>,
) -> io::Result<()> {
    let mut table = Table::new(&[
        "SUBSCRIBER",
        "STATE",
        "ENDPOINTS",
        "TOPICS",
        ">LAG",
        ">OLDEST",
        ">ATTEMPTS",
        ">DELIVERED",
        ">FAILED",
        ">EXPIRED",
        ">DEAD-LETTERED",
    ]);
    for s in subscriptions {
        let topics: Vec<_> = s.topics.iter().map(|topic| escaped(topic)).collect();
        let bound = if s.lag_exact { "" } else { "up to " };
        table.row(vec![
            s.name.clone(),
            s.state.clone(),
            or_dash(&s.endpoints.join(",")),
            if topics.is_empty() { "all".to_owned() } else { topics.join(",") },
            format!("{bound}{}", s.lag_messages),
            format!("{:.1} s", s.lag_seconds),
            s.attempts.to_string(),
            s.delivered.to_string(),
            s.failed.to_string(),
            s.expired_messages.to_string(),
            s.dead_lettered.to_string(),
        ]);
    }
    table.write(out)?;
    // Of those in trouble it stands there.
    for s in subscriptions.iter().filter(|s| !trouble::is_in_trouble(s)) {
        if let Some(error) = &s.last_error {
            writeln!(out, "last error of {}, {}: {}", s.name, trouble::time_of_error(s), escaped(error.as_bytes()))?;
        }
    }
    trouble::write(out, &[before, trouble::of_subscribers(subscriptions, ""), behind].concat())
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}
