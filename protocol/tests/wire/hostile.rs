//! Bytes that want to hurt end in an error that says what is wrong.

use hqueue_protocol::wire::{Delimiter, Detection, Progress, Protocol, WireError, detect, frame};

use super::support::{binary_call, deep, framed};

const LIMIT: usize = 16_777_216;
/// Field 1, a list of structs; its count follows.
const LIST: &[u8] = b"\x0f\x00\x01\x0c";

fn advance(protocol: Protocol, bytes: &[u8]) -> Result<Progress, WireError> {
    Delimiter::new(protocol, LIMIT).advance(bytes)
}

fn consume(parts: &[&[u8]]) -> Vec<u8> {
    binary_call("consumeMessages", &[LIST, &parts.concat()].concat())
}

/// What becomes of a connection that sends this and keeps silent: how far its first message comes, or why it is closed.
fn outcome(bytes: &[u8]) -> Result<Progress, String> {
    let wire = |error: WireError| error.to_string();
    let message = match detect(bytes, LIMIT) {
        Detection::Foreign(foreign) => return Err(foreign.to_string()),
        Detection::NeedMore => return Ok(Progress::NeedMore { at_least: bytes.len() + 1 }),
        Detection::Dialect(dialect) if dialect.transport == hqueue_protocol::wire::Transport::Framed => {
            let size = frame::read_length(bytes, LIMIT).map_err(wire)?.unwrap();
            &bytes[frame::LENGTH_BYTES..][..size]
        }
        Detection::Dialect(_) => bytes,
    };
    advance(Protocol::Binary, message).map_err(wire)
}

#[test]
fn the_collected_payloads_framed_and_buffered() {
    let raw: [(&[u8], &str); 7] = [
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n{test}", "not Thrift: looks like HTTP"),
        (b"GET / HTTP/1.1\r\n\r\n", "not Thrift: looks like HTTP"),
        (b"\x00\x00\x00\x08NI_PING\x00", "not Thrift"),
        (b"\xff\xff\xff\xff", "no frame of Thrift: a length or count of -1 is negative"),
        (b"\x80\x00\x00\x00", "no frame of Thrift: a length or count of -2147483648 is negative"),
        (
            b"\x7f\xff\xff\xff",
            "no frame of Thrift: a message of 2147483647 bytes or more is too large, the limit is 16777216 bytes",
        ),
        (b"\x00\x00\x00\x00", "no frame of Thrift: a frame of 0 bytes holds no message"),
    ];
    for (bytes, expected) in raw {
        assert_eq!(outcome(bytes), Err(expected.to_owned()));
    }
    let deep_call = |levels| binary_call("consumeMessages", &deep(levels));
    let calls = [
        (consume(&[&1i32.to_be_bytes(), b"\x0b\x00\x04", &(-1i32).to_be_bytes()]), "negative"),
        (consume(&[&1i32.to_be_bytes(), b"\x0b\x00\x04", &i32::MAX.to_be_bytes(), b"abc"]), "too large"),
        (consume(&[&(-1i32).to_be_bytes()]), "negative"),
        (consume(&[&i32::MAX.to_be_bytes()]), "too large"),
        (deep_call(200), "deeper than 64"),
        (deep_call(100_000), "deeper than 64"),
    ];
    for (call, reason) in calls {
        assert!(outcome(&call).unwrap_err().contains(reason), "{reason}");
        assert!(outcome(&framed(&call)).unwrap_err().contains(reason), "{reason}");
    }
    for method in ["consumeMessages", "unknownMethod"] {
        let call = binary_call(method, &deep(60));
        assert_eq!(outcome(&call), Ok(Progress::Complete(call.len())));
        assert_eq!(outcome(&framed(&call)), Ok(Progress::Complete(call.len())));
    }
}

#[test]
fn bogus_sizes_of_the_binary_protocol() {
    let message_with_size = |size: i32| consume(&[&1i32.to_be_bytes(), b"\x0b\x00\x04", &size.to_be_bytes(), b"abc"]);
    assert_eq!(advance(Protocol::Binary, &message_with_size(-1)), Err(WireError::NegativeSize(-1)));
    assert!(matches!(advance(Protocol::Binary, &message_with_size(i32::MAX)), Err(WireError::TooLarge { .. })));
    assert_eq!(advance(Protocol::Binary, &consume(&[&(-1i32).to_be_bytes()])), Err(WireError::NegativeSize(-1)));
    assert!(matches!(advance(Protocol::Binary, &consume(&[&i32::MAX.to_be_bytes()])), Err(WireError::TooLarge { .. })));
}

#[test]
fn bogus_sizes_of_the_compact_protocol() {
    let call = |body: &[u8]| [b"\x82\x21\x01\x01m", body].concat();
    // A string of 2^32 - 1 bytes, and one whose size has a bit too many.
    assert_eq!(advance(Protocol::Compact, &call(b"\x18\xff\xff\xff\xff\x0f")), Err(WireError::NegativeSize(-1)));
    assert_eq!(advance(Protocol::Compact, &call(b"\x18\xff\xff\xff\xff\x1f")), Err(WireError::LongNumber));
    assert_eq!(advance(Protocol::Compact, &call(b"\x18\x80\x80\x80\x80\x80\x01")), Err(WireError::LongNumber));
    // Two billion structs, two billion map entries.
    assert!(matches!(advance(Protocol::Compact, &call(b"\x19\xfc\xff\xff\xff\xff\x07")), Err(WireError::TooLarge { .. })));
    assert!(matches!(advance(Protocol::Compact, &call(b"\x1b\xff\xff\xff\xff\x07\x88")), Err(WireError::TooLarge { .. })));
    // An id that is no i16, an i64 that goes on too long.
    assert_eq!(advance(Protocol::Compact, &call(b"\x08\x80\x80\x04\x00")), Err(WireError::LongNumber));
    assert_eq!(advance(Protocol::Compact, &call(b"\x16\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02")), Err(WireError::LongNumber));
}

#[test]
fn elements_without_bytes_do_not_keep_us_busy() {
    // Two billion elements of type void, and of no type.
    assert_eq!(advance(Protocol::Binary, &binary_call("m", b"\x0f\x00\x01\x01\x7f\xff\xff\xff")), Err(WireError::BadType(1)));
    assert_eq!(advance(Protocol::Binary, &binary_call("m", b"\x0f\x00\x01\x00\x7f\xff\xff\xff")), Err(WireError::BadType(0)));
    assert_eq!(advance(Protocol::Compact, b"\x82\x21\x01\x01m\x19\xf0\xff\xff\xff\xff\x07"), Err(WireError::BadType(0)));
    // An empty list may leave its type open.
    let empty = binary_call("m", b"\x0f\x00\x01\x00\x00\x00\x00\x00\x00");
    assert_eq!(advance(Protocol::Binary, &empty), Ok(Progress::Complete(empty.len())));
}

#[test]
fn headers_that_are_none() {
    assert_eq!(advance(Protocol::Binary, b"\x80\x02\x00\x01"), Err(WireError::BadVersion(0x80, 2)));
    assert_eq!(advance(Protocol::Binary, b"\x80\x01\x00\x07"), Err(WireError::BadMessageType(7)));
    assert_eq!(advance(Protocol::Binary, b"\x80\x01\x00\x01\x7f\xff\xff\xff"), Err(WireError::BadMethodName));
    assert_eq!(advance(Protocol::Binary, b"\x80\x01\x00\x01\xff\xff\xff\xff"), Err(WireError::NegativeSize(-1)));
    assert_eq!(advance(Protocol::Binary, b"\x00\x00\x00\x08NI_PING\x00"), Err(WireError::BadMethodName));
    assert_eq!(advance(Protocol::Compact, b"\x80\x01\x00\x01"), Err(WireError::BadVersion(0x80, 1)));
    assert_eq!(advance(Protocol::Compact, b"\x82\x02"), Err(WireError::BadVersion(0x82, 2)));
}
