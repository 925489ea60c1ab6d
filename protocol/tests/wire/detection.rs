//! What a peer speaks is told from its first bytes, and what is no Thrift is named.

use hqueue_protocol::wire::{Detection, Dialect, Foreign, Protocol, Transport, WireError, detect};

use super::support::{PROTOCOLS, framed, gateway_call};

const LIMIT: usize = 16_777_216;

fn renew(protocol: Protocol) -> Vec<u8> {
    use hqueue_protocol::generated::THQueueServiceSyncClient;
    gateway_call(protocol, |client| client.renew(7).is_err())
}

/// The same call as old clients write it, without the version.
fn renew_without_version() -> Vec<u8> {
    let call = renew(Protocol::Binary);
    let (head, rest) = call.split_at(4 + 4 + 5);
    [&head[4..], &[1], rest].concat()
}

/// Says `dialect` of the call, and nothing wrong of any beginning of it.
fn check(call: &[u8], transport: Transport, protocol: Protocol) {
    let expected = Detection::Dialect(Dialect { transport, protocol });
    for end in 0..=call.len() {
        let found = detect(&call[..end], LIMIT);
        assert!(found == expected || found == Detection::NeedMore, "{found:?} of {:02x?}", &call[..end]);
    }
    assert_eq!(detect(call, LIMIT), expected);
}

#[test]
fn all_dialects_are_told_apart() {
    for protocol in PROTOCOLS {
        check(&renew(protocol), Transport::Buffered, protocol);
        check(&framed(&renew(protocol)), Transport::Framed, protocol);
    }
    check(&renew_without_version(), Transport::Buffered, Protocol::Binary);
    check(&framed(&renew_without_version()), Transport::Framed, Protocol::Binary);
}

#[test]
fn a_dialect_is_told_before_the_call_is_complete() {
    for protocol in PROTOCOLS {
        assert!(matches!(detect(&renew(protocol)[..2], LIMIT), Detection::Dialect(_)));
        assert!(matches!(detect(&framed(&renew(protocol))[..6], LIMIT), Detection::Dialect(_)));
    }
}

#[test]
fn other_protocols_are_named() {
    let named = |bytes: &[u8]| match detect(bytes, LIMIT) {
        Detection::Foreign(foreign) => foreign,
        other => panic!("{other:?} of {bytes:02x?}"),
    };
    assert_eq!(named(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n{test}"), Foreign::Http);
    assert_eq!(named(b"GET /"), Foreign::Http);
    assert_eq!(named(b"PRI * HTTP/2.0\r\n"), Foreign::Http);
    assert_eq!(named(b"SSH-2.0-OpenSSH_9.2"), Foreign::Ssh);
    assert_eq!(named(b"\x16\x03\x01\x02\x00"), Foreign::Tls);
    assert_eq!(named(b"Hello\n"), Foreign::Text);
    assert_eq!(named(b"ruok"), Foreign::Text);
    assert_eq!(named(b"\x00\x00\x00\x08NI_PING\x00"), Foreign::Unknown);
    assert_eq!(named(b"\x00\x00\x00\x08\x01\x02\x03\x04"), Foreign::Unknown);
    assert_eq!(named(b"\x7f\xff\xff\xffx"), Foreign::Frame(WireError::TooLarge { size: 0x7fff_ffff, limit: LIMIT }));
    assert_eq!(named(b"\x01\x00\x00\x01"), Foreign::Frame(WireError::TooLarge { size: LIMIT + 1, limit: LIMIT }));
    assert_eq!(named(b"\x80\x00\x00\x00"), Foreign::Frame(WireError::NegativeSize(i64::from(i32::MIN))));
    assert_eq!(named(b"\xff\xff\xff\xff"), Foreign::Frame(WireError::NegativeSize(-1)));
    assert_eq!(named(b"\x00\x00\x00\x00"), Foreign::Frame(WireError::EmptyFrame));
    assert_eq!(named(b"\x00\x00\x00\x08\x00\x00\x00\x00"), Foreign::Unknown);
}

#[test]
fn a_frame_of_the_largest_size_is_taken() {
    let mut call = framed(&renew(Protocol::Binary));
    call[..4].copy_from_slice(&[1, 0, 0, 0]);
    assert!(matches!(detect(&call, LIMIT), Detection::Dialect(_)));
}
