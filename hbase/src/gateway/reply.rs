//! Results of calls, stepped over.
//!
//! ```text
//! result     0: what was asked for   1: TIOError { 1: message  2: canRetry }   2: TIllegalArgument { 1: message }
//! TResult    1: row   2: list of TColumnValue { 1: family  2: qualifier  3: value  4: timestamp }
//! ```

use bytes::Bytes;
use hqueue_protocol::wire::binary::{self, Binary};
use hqueue_protocol::wire::{Encoding, Field, Kind, WireError, skip};

use super::GatewayError;

/// Characters of what HBase says that are passed on.
const LONGEST: usize = 400;
/// Containers around a field of the result.
const DEPTH: usize = 2;

/// Passes on a result that is no error.
pub(super) fn check(body: Bytes) -> Result<Bytes, GatewayError> {
    let mut at = 0;
    while let Some(field) = Binary::field(&body, &mut at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::Struct) => return Err(failure(&body, &mut at, true)?),
            (2, Kind::Struct) => return Err(failure(&body, &mut at, false)?),
            (_, kind) => skip::<Binary>(&body, &mut at, kind, DEPTH)?,
        }
    }
    Ok(body)
}

fn failure(body: &[u8], at: &mut usize, mut can_retry: bool) -> Result<GatewayError, WireError> {
    let mut message = String::new();
    while let Some(field) = Binary::field(body, at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::String) => message = String::from_utf8_lossy(binary::read_bytes(body, at)?).into_owned(),
            (2, Kind::Bool) => can_retry = Binary::bool(body, at)?,
            (_, kind) => skip::<Binary>(body, at, kind, DEPTH + 1)?,
        }
    }
    // The gateway says so of everything that it has tried several times itself.
    can_retry &= !message.contains("org.apache.hadoop.hbase.DoNotRetryIOException");
    Ok(GatewayError::Failed { message: in_short(&message), can_retry })
}

/// Without the frames of Java's stack. The bare name of a table is all that HBase says of one that is not there.
fn in_short(message: &str) -> String {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("at "));
    let text = lines.collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None if !text.is_empty() && !text.contains(' ') => format!("{text}: is this table missing, or disabled?"),
        None => text,
    }
}

/// Where the value of field 0 begins, and its kind.
fn success(body: &[u8]) -> Result<Option<(usize, Kind)>, WireError> {
    let mut at = 0;
    while let Some(Field { id, kind, .. }) = Binary::field(body, &mut at, 0)? {
        if id == 0 {
            return Ok(Some((at, kind)));
        }
        skip::<Binary>(body, &mut at, kind, DEPTH)?;
    }
    Ok(None)
}

fn expected(what: &str) -> GatewayError {
    GatewayError::Foreign { reason: format!("the answer has no {what}") }
}

/// The result of a call that has none.
pub(crate) fn nothing(_body: Bytes) {}

/// The bytes of a struct that was asked for.
pub(crate) fn struct_field(body: &Bytes) -> Result<Bytes, GatewayError> {
    match success(body)? {
        Some((at, Kind::Struct)) => Ok(body.slice(at..)),
        _ => Err(expected("struct")),
    }
}

/// A text or bytes that were asked for.
pub(crate) fn string_field(body: &Bytes) -> Result<Bytes, GatewayError> {
    match success(body)? {
        Some((mut at, Kind::String)) => Ok(string(body, &mut at)?),
        _ => Err(expected("text")),
    }
}

/// The structs of a list that was asked for, each by itself.
pub(crate) fn list_field(body: &Bytes) -> Result<Vec<Bytes>, GatewayError> {
    let Some((mut at, Kind::List)) = success(body)? else { return Err(expected("list")) };
    let (kind, count) = Binary::list(body, &mut at)?;
    let mut found = Vec::new();
    for _ in 0..count {
        let begin = at;
        skip::<Binary>(body, &mut at, kind, DEPTH)?;
        found.push(body.slice(begin..at));
    }
    Ok(found)
}

/// A scalar that was asked for.
pub(crate) fn optional(body: &Bytes) -> Result<Option<i64>, GatewayError> {
    let Some((mut at, kind)) = success(body)? else { return Ok(None) };
    let value = match kind {
        Kind::Bool => i64::from(Binary::bool(body, &mut at)?),
        Kind::I32 => i64::from(binary::read_i32(body, &mut at)?),
        _ => return Err(expected("number")),
    };
    Ok(Some(value))
}

/// One row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Bytes,
    pub(crate) cells: Vec<RowCell>,
}

/// One value in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowCell {
    pub(crate) family: Bytes,
    pub(crate) qualifier: Bytes,
    pub(crate) value: Bytes,
    pub(crate) timestamp: i64,
}

/// The rows that were asked for. Bytes are shared with `body`.
pub(crate) fn rows(body: &Bytes) -> Result<Vec<Row>, GatewayError> {
    let Some((mut at, Kind::List)) = success(body)? else { return Err(expected("list of rows")) };
    let (kind, count) = Binary::list(body, &mut at)?;
    if count > 0 && kind != Kind::Struct {
        return Err(expected("list of rows"));
    }
    let mut rows = Vec::new();
    for _ in 0..count {
        let row = row(body, &mut at)?;
        // A get that finds nothing gives a row without cells.
        if !row.cells.is_empty() {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row(body: &Bytes, at: &mut usize) -> Result<Row, GatewayError> {
    let mut row = Row::default();
    while let Some(field) = Binary::field(body, at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::String) => row.key = string(body, at)?,
            (2, Kind::List) => {
                let (kind, count) = Binary::list(body, at)?;
                if count > 0 && kind != Kind::Struct {
                    return Err(expected("list of cells"));
                }
                for _ in 0..count {
                    row.cells.push(cell(body, at)?);
                }
            }
            (_, kind) => skip::<Binary>(body, at, kind, DEPTH + 2)?,
        }
    }
    Ok(row)
}

fn cell(body: &Bytes, at: &mut usize) -> Result<RowCell, WireError> {
    let mut cell = RowCell { family: Bytes::new(), qualifier: Bytes::new(), value: Bytes::new(), timestamp: 0 };
    while let Some(field) = Binary::field(body, at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::String) => cell.family = string(body, at)?,
            (2, Kind::String) => cell.qualifier = string(body, at)?,
            (3, Kind::String) => cell.value = string(body, at)?,
            (4, Kind::I64) => cell.timestamp = binary::read_i64(body, at)?,
            (_, kind) => skip::<Binary>(body, at, kind, DEPTH + 4)?,
        }
    }
    Ok(cell)
}

fn string(body: &Bytes, at: &mut usize) -> Result<Bytes, WireError> {
    let length = binary::read_bytes(body, at)?.len();
    Ok(body.slice(*at - length..*at))
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::wire::Encode;

    use super::*;

    /// A `TIOError` that says it may be tried again.
    fn failed(message: &str) -> (String, bool) {
        let mut body = Vec::new();
        Binary::write_field(&mut body, Kind::Struct, 1, 0);
        Binary::write_field(&mut body, Kind::String, 1, 0);
        Binary::write_string(&mut body, message.as_bytes());
        Binary::write_end(&mut body);
        Binary::write_end(&mut body);
        match check(body.into()) {
            Err(GatewayError::Failed { message, can_retry }) => (message, can_retry),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_hbase_never_takes_is_not_tried_again() {
        let text = "Failed 1 action: org.apache.hadoop.hbase.DoNotRetryIOException: Cell[x] exceeds limit of 10485760 bytes\n\tat org.apache.A.b(A.java:1)\n\tat C.d(C.java:2)\n: 1 time";
        let (message, can_retry) = failed(text);
        assert!(!can_retry);
        assert!(message.ends_with("exceeds limit of 10485760 bytes : 1 time"), "{message}");
        assert!(failed("org.apache.hadoop.hbase.NotServingRegionException: x is not online").1);
    }

    #[test]
    fn what_hbase_says_is_short_and_has_words() {
        assert!(failed("b8:qb").0.contains("missing, or disabled"));
        assert!(failed(&"wörds ".repeat(200)).0.chars().count() <= LONGEST + 1);
    }
}
