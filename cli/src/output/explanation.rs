//! What became of a message, for people or as JSON.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hqueue::{CallDetails, Explanation, MessageStanding};
use serde::Serialize;

use super::table::Table;
use super::{escaped, print_json};
use crate::connection::Format;
use crate::failure::Failure;

/// Field by field in the order in which they are printed; what is not known is left out.
#[derive(Debug, Serialize)]
struct Explained<'a> {
    queue: &'a str,
    partition: i16,
    id: String,
    state: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_base64: Option<String>,
    subscriptions: Vec<Standing<'a>>,
}

#[derive(Debug, Serialize)]
struct Standing<'a> {
    name: &'a str,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    letter: Option<String>,
    calls: Vec<Call<'a>>,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    time: &'a str,
    endpoint: &'a str,
    attempt: i32,
    result: &'a str,
}

/// `explain`.
pub(crate) fn print_explanation(format: Format, explanation: &Explanation) -> Result<(), Failure> {
    match format {
        Format::Json => print_json(&Explained::from(explanation)),
        Format::Text => Ok(write_text(&mut io::stdout().lock(), explanation)?),
    }
}

fn write_text(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    let Explanation { queue, partition, id, text, topic, subscriptions, .. } = explanation;
    let topic = topic.as_ref().map(|topic| format!(", its topic is {}", escaped(topic))).unwrap_or_default();
    writeln!(out, "message {id} of partition {partition} of queue {queue}: {}{topic}", escaped(text.as_bytes()))?;
    if subscriptions.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(&["SUBSCRIBER", "STATE", "WHAT IS KNOWN"]);
    for s in subscriptions {
        table.row(vec![s.subscriber.clone(), s.state.clone(), escaped(s.text.as_bytes()).into_owned()]);
    }
    table.write(out)?;
    // A single call, which is all that the line above tells, is not told twice.
    for s in subscriptions.iter().filter(|s| s.calls.len() > 1) {
        writeln!(out, "\ncalls to {}:", s.subscriber)?;
        for call in &s.calls {
            let CallDetails { time, endpoint, attempt, result } = call;
            writeln!(out, "  {time}  {endpoint}  attempt {attempt}: {}", escaped(result.as_bytes()))?;
        }
    }
    Ok(())
}

impl<'a> From<&'a Explanation> for Explained<'a> {
    fn from(explanation: &'a Explanation) -> Self {
        let Explanation { queue, partition, id, state, text, topic, subscriptions } = explanation;
        let plain = topic.as_deref().and_then(|topic| std::str::from_utf8(topic).ok());
        Self {
            queue,
            partition: *partition,
            id: id.to_string(),
            state,
            text,
            topic: plain,
            topic_base64: topic.as_ref().filter(|_| plain.is_none()).map(|topic| STANDARD.encode(topic)),
            subscriptions: subscriptions.iter().map(Standing::from).collect(),
        }
    }
}

impl<'a> From<&'a MessageStanding> for Standing<'a> {
    fn from(s: &'a MessageStanding) -> Self {
        let call = |c: &'a CallDetails| Call { time: &c.time, endpoint: &c.endpoint, attempt: c.attempt, result: &c.result };
        Self {
            name: &s.subscriber,
            state: &s.state,
            reason: s.reason.as_deref(),
            text: &s.text,
            time: s.time.as_deref(),
            endpoint: s.endpoint.as_deref(),
            attempts: s.attempts,
            last_error: s.last_error.as_deref(),
            behind: s.behind.map(|id| id.to_string()),
            ahead: s.ahead,
            wait_ms: s.wait_ms,
            letter: s.letter.map(|id| id.to_string()),
            calls: s.calls.iter().map(call).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hqueue::MessageId;

    use super::*;

    fn explanation() -> Explanation {
        let call = |attempt, result: &str| CallDetails {
            time: "2026-03-29T02:30:00.000Z".to_owned(),
            endpoint: "a:1".to_owned(),
            attempt,
            result: result.to_owned(),
        };
        let standing = MessageStanding {
            subscriber: "s".to_owned(),
            state: "waiting".to_owned(),
            reason: Some("retrying".to_owned()),
            text: "its batch\nhas failed".to_owned(),
            behind: Some(MessageId::new(5, 6)),
            ahead: Some(2),
            calls: vec![call(1, "no"), call(2, "no")],
            ..MessageStanding::default()
        };
        Explanation {
            queue: "q".to_owned(),
            partition: 3,
            id: MessageId::new(7, 8),
            state: "stored".to_owned(),
            text: "it is stored".to_owned(),
            topic: Some(b"a\xff".to_vec().into()),
            subscriptions: vec![standing],
        }
    }

    #[test]
    fn people_read_lines() {
        let mut out = Vec::new();
        write_text(&mut out, &explanation()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "message 7:8 of partition 3 of queue q: it is stored, its topic is a\\xff\n\n\
             SUBSCRIBER  STATE    WHAT IS KNOWN\n\
             s           waiting  its batch\\nhas failed\n\n\
             calls to s:\n  2026-03-29T02:30:00.000Z  a:1  attempt 1: no\n  2026-03-29T02:30:00.000Z  a:1  attempt 2: no\n"
        );
        let mut out = Vec::new();
        write_text(&mut out, &Explanation { topic: None, subscriptions: Vec::new(), ..explanation() }).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "message 7:8 of partition 3 of queue q: it is stored\n");
    }

    #[test]
    fn programs_read_an_object() {
        assert_eq!(
            serde_json::to_string(&Explained::from(&explanation())).unwrap(),
            "{\"queue\":\"q\",\"partition\":3,\"id\":\"7:8\",\"state\":\"stored\",\"text\":\"it is stored\",\"topic_base64\":\"Yf8=\",\
             \"subscriptions\":[{\"name\":\"s\",\"state\":\"waiting\",\"reason\":\"retrying\",\"text\":\"its batch\\nhas failed\",\
             \"behind\":\"5:6\",\"ahead\":2,\"calls\":[\
             {\"time\":\"2026-03-29T02:30:00.000Z\",\"endpoint\":\"a:1\",\"attempt\":1,\"result\":\"no\"},\
             {\"time\":\"2026-03-29T02:30:00.000Z\",\"endpoint\":\"a:1\",\"attempt\":2,\"result\":\"no\"}]}]}"
        );
    }
}
