//! A message, or where it went, in a line.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hqueue::{DeadLetter, Message, Placed};
use serde::Serialize;

use super::escaped;
use super::status::rfc3339;
use crate::connection::Format;

/// What is not UTF-8 stands in the field behind, in base64.
#[derive(Debug, Serialize)]
struct MessageLine<'a> {
    partition: i16,
    id: String,
    #[serde(flatten)]
    topic: Topic<'a>,
    #[serde(flatten)]
    value: Value<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers_base64: BTreeMap<&'a str, String>,
}

#[derive(Debug, Serialize)]
enum Topic<'a> {
    #[serde(rename = "topic")]
    Text(&'a str),
    #[serde(rename = "topic_base64")]
    Bytes(String),
}

#[derive(Debug, Serialize)]
enum Value<'a> {
    #[serde(rename = "value")]
    Text(&'a str),
    #[serde(rename = "value_base64")]
    Bytes(String),
}

#[derive(Debug, Serialize)]
struct PlacedLine {
    partition: i16,
    id: String,
}

/// `PARTITION ID`, or an object.
pub(crate) fn write_placed(out: &mut impl Write, format: Format, placed: Placed) -> io::Result<()> {
    let Placed { partition, id } = placed;
    match format {
        Format::Text => writeln!(out, "{partition} {id}"),
        Format::Json => {
            serde_json::to_writer(&mut *out, &PlacedLine { partition, id: id.to_string() })?;
            out.write_all(b"\n")
        }
    }
}

/// `PARTITION`, `ID`, `TOPIC` and `VALUE` with tabs between them, or an object.
pub(crate) fn write_message(out: &mut impl Write, format: Format, message: &Message) -> io::Result<()> {
    let Message { partition, id, topic, value, .. } = message;
    if format == Format::Text {
        return writeln!(out, "{partition}\t{id}\t{}\t{}", escaped(topic), escaped(value));
    }
    serde_json::to_writer(&mut *out, &MessageLine::from(message))?;
    out.write_all(b"\n")
}

impl<'a> From<&'a Message> for MessageLine<'a> {
    fn from(Message { partition, id, topic, value, headers }: &'a Message) -> Self {
        let mut line = Self {
            partition: *partition,
            id: id.to_string(),
            topic: std::str::from_utf8(topic).map_or_else(|_| Topic::Bytes(STANDARD.encode(topic)), Topic::Text),
            value: std::str::from_utf8(value).map_or_else(|_| Value::Bytes(STANDARD.encode(value)), Value::Text),
            headers: BTreeMap::new(),
            headers_base64: BTreeMap::new(),
        };
        for (name, value) in headers {
            match std::str::from_utf8(value) {
                Ok(text) => drop(line.headers.insert(name, text)),
                Err(_) => drop(line.headers_base64.insert(name, STANDARD.encode(value))),
            }
        }
        line
    }
}

#[derive(Debug, Serialize)]
struct DeadLetterLine<'a> {
    #[serde(flatten)]
    message: MessageLine<'a>,
    attempts: u32,
    last_error: &'a str,
    since: String,
}

/// `PARTITION`, `ID`, `ATTEMPTS`, `LAST ERROR`, `TOPIC` and `VALUE` with tabs between them, or an object.
pub(crate) fn write_dead_letter(out: &mut impl Write, format: Format, letter: &DeadLetter) -> io::Result<()> {
    let DeadLetter { message, attempts, last_error, since_ms } = letter;
    if format == Format::Text {
        let Message { partition, id, topic, value, .. } = message;
        let error = escaped(last_error.as_bytes());
        return writeln!(out, "{partition}\t{id}\t{attempts}\t{error}\t{}\t{}", escaped(topic), escaped(value));
    }
    let line = DeadLetterLine { message: message.into(), attempts: *attempts, last_error, since: rfc3339(*since_ms) };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hqueue::MessageId;

    use super::*;

    fn shown(format: Format, topic: &'static [u8], value: &'static [u8], headers: &[(&str, &'static [u8])]) -> String {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), Bytes::from_static(v))).collect();
        let (topic, value) = (Bytes::from_static(topic), Bytes::from_static(value));
        let message = Message { partition: 3, id: MessageId::new(1_700_000_000_000, 12), topic, value, headers };
        let mut out = Vec::new();
        write_message(&mut out, format, &message).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_has_four_columns_and_one_line() {
        assert_eq!(shown(Format::Text, b"t\tt", b"a\nb", &[("h", b"x")]), "3\t1700000000000:12\tt\\tt\ta\\nb\n");
    }

    #[test]
    fn json_has_text_where_it_can() {
        assert_eq!(
            shown(Format::Json, b"t", "é\n".as_bytes(), &[("h", b"x"), ("b", b"\xff")]),
            "{\"partition\":3,\"id\":\"1700000000000:12\",\"topic\":\"t\",\"value\":\"é\\n\",\"headers\":{\"h\":\"x\"},\
             \"headers_base64\":{\"b\":\"/w==\"}}\n"
        );
        assert_eq!(
            shown(Format::Json, b"\xff", b"\x00\xfe", &[]),
            "{\"partition\":3,\"id\":\"1700000000000:12\",\"topic_base64\":\"/w==\",\"value_base64\":\"AP4=\"}\n"
        );
    }

    #[test]
    fn where_a_message_went() {
        let placed = Placed { partition: 1, id: MessageId::new(5, 6) };
        for (format, line) in [(Format::Text, "1 5:6\n"), (Format::Json, "{\"partition\":1,\"id\":\"5:6\"}\n")] {
            let mut out = Vec::new();
            write_placed(&mut out, format, placed).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), line);
        }
    }
}
