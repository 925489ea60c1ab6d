//! The end of a message is found from its structure, however its bytes are cut.

use std::collections::BTreeMap;

use hqueue_protocol::generated::{THQueueServiceSyncClient, TMessage, TMessageID, TMessageScan};
use hqueue_protocol::wire::{Delimiter, Progress, Protocol, WireError};

use super::support::{PROTOCOLS, binary_call, consume_call, deep, gateway_call};

const LIMIT: usize = 16_777_216;

fn message(value: &[u8]) -> TMessage {
    let headers = BTreeMap::from([("k".to_owned(), vec![0; 200]), ("empty".to_owned(), vec![])]);
    TMessage::new(TMessageID::new(1_700_000_000_000, 12), 3, b"topic".to_vec(), value.to_vec(), headers)
}

fn calls(protocol: Protocol) -> Vec<Vec<u8>> {
    let scan = TMessageScan::new(TMessageID::new(1, 2), None, vec![b"a".to_vec(), vec![], vec![7; 300]]);
    vec![
        consume_call(protocol, vec![]),
        consume_call(protocol, (0..20).map(|n| message(&vec![n; usize::from(n) * 17])).collect()),
        gateway_call(protocol, |client| client.put_message_with_pid(b"q1".to_vec(), 5, message(b"value")).is_err()),
        gateway_call(protocol, |client| client.message_scanner_open(b"q1".to_vec(), -1, scan).is_err()),
        gateway_call(protocol, |client| client.renew(i64::MIN).is_err()),
    ]
}

#[test]
fn messages_are_cut_anywhere() {
    for protocol in PROTOCOLS {
        for call in calls(protocol) {
            let followed = [&call[..], &[0x80, 1, 0]].concat();
            assert_eq!(Delimiter::new(protocol, LIMIT).advance(&followed), Ok(Progress::Complete(call.len())));
            for cut in 0..call.len() {
                let mut delimiter = Delimiter::new(protocol, LIMIT);
                match delimiter.advance(&call[..cut]).unwrap() {
                    Progress::NeedMore { at_least } => assert!((cut + 1..=call.len()).contains(&at_least)),
                    complete @ Progress::Complete(_) => panic!("{complete:?} of {cut} bytes"),
                }
                assert_eq!(delimiter.advance(&followed), Ok(Progress::Complete(call.len())), "{protocol:?} cut at {cut}");
            }
        }
    }
}

#[test]
fn messages_arrive_byte_by_byte() {
    for protocol in PROTOCOLS {
        for call in calls(protocol) {
            let mut delimiter = Delimiter::new(protocol, LIMIT);
            for end in 0..call.len() {
                assert!(matches!(delimiter.advance(&call[..end]), Ok(Progress::NeedMore { .. })));
            }
            assert_eq!(delimiter.advance(&call), Ok(Progress::Complete(call.len())));
        }
    }
}

#[test]
fn a_reader_that_waits_for_what_is_needed_reads_little() {
    let call = consume_call(Protocol::Binary, vec![message(&vec![1; 1_000_000])]);
    let mut delimiter = Delimiter::new(Protocol::Binary, LIMIT);
    let (mut end, mut rounds) = (0, 0);
    while let Progress::NeedMore { at_least } = delimiter.advance(&call[..end]).unwrap() {
        end = at_least;
        rounds += 1;
    }
    assert_eq!(end, call.len());
    assert!(rounds < 150, "{rounds}");
}

#[test]
fn a_binary_message_without_its_version_is_taken() {
    let mut reply = 15u32.to_be_bytes().to_vec();
    reply.extend(b"consumeMessages\x02\0\0\0\x05\x08\0\0\0\0\0\0\0");
    assert_eq!(Delimiter::new(Protocol::Binary, LIMIT).advance(&reply), Ok(Progress::Complete(reply.len())));
}

#[test]
fn sizes_are_limited_before_the_bytes_arrive() {
    let refused = |bytes: &[u8], size, limit| {
        assert_eq!(Delimiter::new(Protocol::Binary, limit).advance(bytes), Err(WireError::TooLarge { size, limit }));
    };
    let call = binary_call("m", b"\x0b\x00\x04\x00\x10\x00\x00");
    refused(&call, call.len() + 0x10_0000, 0x10_0000);
    let list = binary_call("m", b"\x0f\x00\x01\x08\x01\x00\x00\x00");
    refused(&list, list.len() + 4 * 0x100_0000, LIMIT);
    let whole = binary_call("m", &[0]);
    assert_eq!(Delimiter::new(Protocol::Binary, whole.len()).advance(&whole), Ok(Progress::Complete(whole.len())));
    refused(&whole, whole.len(), whole.len() - 1);
}

#[test]
fn sixty_levels_are_taken_and_more_than_sixty_four_refused() {
    let advance = |levels| {
        let call = binary_call("unknownMethod", &deep(levels));
        Delimiter::new(Protocol::Binary, LIMIT).advance(&call).map(|progress| progress == Progress::Complete(call.len()))
    };
    assert_eq!(advance(60), Ok(true));
    // Two more structs stand around them: the arguments and the field.
    assert_eq!(advance(62), Ok(true));
    for levels in [63, 200, 100_000] {
        assert_eq!(advance(levels), Err(WireError::TooDeep));
    }
}
