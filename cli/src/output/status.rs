//! Queues and subscriptions, as tables for people or as JSON.

use std::io::{self, Write};

use hqueue::{ClusterStatus, MessageId, QueueDescription, QueueStatus, SubscriptionStatus};

use super::table::Table;
use super::{escaped, json, print_json};
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
    for (key, value) in &queue.configuration {
        writeln!(out, "{key} = {}", escaped(value.as_bytes()))?;
    }
    Ok(())
}

/// `status` without a queue.
pub(crate) fn print_cluster_status(format: Format, status: &ClusterStatus) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&json::Cluster::from(status));
    }
    let mut out = io::stdout().lock();
    let mut brokers = Table::new(&["BROKER", "ADDRESS", "STATE"]);
    for b in &status.brokers {
        brokers.row(vec![b.name.clone(), b.address.clone(), b.state.clone()]);
    }
    brokers.write(&mut out)?;
    let mut queues = Table::new(&["QUEUE", ">PARTITIONS", ">OFFLINE", ">SUBSCRIPTIONS", ">LAG"]);
    for q in &status.queues {
        let [partitions, offline, subscriptions] = [q.partitions, q.offline, q.subscriptions].map(|n| n.to_string());
        queues.row(vec![q.name.clone(), partitions, offline, subscriptions, q.lag_messages.to_string()]);
    }
    writeln!(out)?;
    Ok(queues.write(&mut out)?)
}

/// `status QUEUE`.
pub(crate) fn print_queue_status(format: Format, queue: &QueueStatus) -> Result<(), Failure> {
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
    Ok(write_subscriptions(&mut out, &queue.subscriptions)?)
}

/// `list_subscribers`.
pub(crate) fn print_subscribers(format: Format, subscribers: &[SubscriptionStatus]) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&json::Subscribers::from(subscribers));
    }
    Ok(write_subscriptions(&mut io::stdout().lock(), subscribers)?)
}

fn write_subscriptions(out: &mut impl Write, subscriptions: &[SubscriptionStatus]) -> io::Result<()> {
    let titles = ["SUBSCRIBER", "STATE", "ENDPOINTS", "TOPICS", ">LAG", ">OLDEST", ">DELIVERED", ">FAILED", ">EXPIRED"];
    let mut table = Table::new(&titles);
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
            s.delivered.to_string(),
            s.failed.to_string(),
            s.expired_messages.to_string(),
        ]);
    }
    table.write(out)?;
    for s in subscriptions {
        if let Some(error) = &s.last_error {
            let time = s.last_error_time.as_deref().unwrap_or("at an unknown time");
            writeln!(out, "last error of {}, {time}: {}", s.name, escaped(error.as_bytes()))?;
        }
    }
    Ok(())
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}
