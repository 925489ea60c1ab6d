//! Seeded random damage: never a panic, never a read outside, never memory for what is not there.
//!
//! `HQUEUE_FUZZ_ITERATIONS` and `HQUEUE_FUZZ_SEED` make the long form. A program of its own, since it watches the process's memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

#[path = "wire/support.rs"]
mod support;

use std::collections::BTreeMap;

use bytes::Bytes;
use hqueue_protocol::generated::{THQueueServiceSyncClient, TMessage, TMessageID, TMessageScan};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutShape, StoredSlice, read_put, to_compact};
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::compact::Compact;
use hqueue_protocol::wire::{Delimiter, Encode, Kind, Progress, Protocol, WireError, detect, header, skip};
use thrift::protocol::TSerializable;

use support::{PROTOCOLS, binary_call, consume_call, deep, framed, gateway_call, input};

const LIMIT: usize = 1 << 20;
const SHAPES: [PutShape; 4] = [PutShape::Message, PutShape::List, PutShape::PartitionAndMessage, PutShape::PartitionAndList];

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn corpus(protocol: Protocol) -> Vec<Vec<u8>> {
    let headers = BTreeMap::from([("attempts".to_owned(), b"3".to_vec()), (String::new(), vec![])]);
    let message = |value: usize| {
        TMessage::new(TMessageID::new(1_700_000_000_000, 12), 3, b"topic".to_vec(), vec![0xab; value], headers.clone())
    };
    let plain = TMessage::new(None, None, b"t".to_vec(), b"v".to_vec(), None);
    let scan = TMessageScan::new(TMessageID::new(1, 2), None, vec![b"a".to_vec()]);
    vec![
        gateway_call(protocol, |client| client.put_message(b"q".to_vec(), plain.clone()).is_err()),
        gateway_call(protocol, |client| client.put_messages(b"q".to_vec(), vec![plain.clone(); 20]).is_err()),
        gateway_call(protocol, |client| client.put_message_with_pid(b"q".to_vec(), 1, message(20)).is_err()),
        gateway_call(protocol, |client| client.put_messages_for_ids(b"q".to_vec(), 1, vec![message(9), message(200)]).is_err()),
        gateway_call(protocol, |client| client.message_scanner_open(b"q".to_vec(), 1, scan).is_err()),
        consume_call(protocol, vec![message(0), plain, message(130)]),
        binary_call("unknownMethod", &deep(61)),
    ]
}

/// A few changes, such as hostile peers and broken links make.
fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut fastrand::Rng) {
    const NUMBERS: [i32; 8] = [-1, 0, 1, 15, 127, 0x0100_0000, i32::MAX, i32::MIN];
    for _ in 0..random.usize(0..4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..7) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = random.u8(..),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.u8(..)),
            4 => drop(bytes.drain(at..(at + random.usize(..9)).min(bytes.len()))),
            5 => {
                for (place, byte) in bytes[at..].iter_mut().zip(random.choice(NUMBERS).unwrap().to_be_bytes()) {
                    *place = byte;
                }
            }
            _ => {
                let from = random.usize(..other.len());
                let piece = &other[from..(from + random.usize(..40)).min(other.len())];
                drop(bytes.splice(at..at, piece.iter().copied()));
            }
        }
    }
}

/// The answer is the same however the bytes are cut.
fn delimit(protocol: Protocol, bytes: &[u8], random: &mut fastrand::Rng) -> Result<Progress, WireError> {
    let whole = Delimiter::new(protocol, LIMIT).advance(bytes);
    let mut delimiter = Delimiter::new(protocol, LIMIT);
    let mut end = 0;
    loop {
        let progress = delimiter.advance(&bytes[..end]);
        match progress {
            Ok(Progress::NeedMore { at_least }) => {
                assert!(at_least > end && at_least <= LIMIT);
                if end == bytes.len() {
                    assert_eq!(whole, progress);
                    return whole;
                }
                end = (end + random.usize(1..20)).min(bytes.len());
            }
            other => {
                assert_eq!(whole, other, "cut at {end}");
                return whole;
            }
        }
    }
}

fn put(protocol: Protocol, args: &[u8]) {
    for shape in SHAPES {
        let Ok(put) = read_put(protocol, args, shape, 150) else { continue };
        assert!(put.batch.byte_len() <= 12 * args.len() + 25, "{} of {}", put.batch.byte_len(), args.len());
        let count = put.batch.count();
        let Some(slice) = put.batch.seal(7, || MessageId::new(5, 6)) else { continue };
        let mut rest: &[u8] = &slice.bytes;
        for message in slice.messages() {
            let message = message.unwrap();
            assert_eq!((message.id, message.partition), (MessageId::new(5, 6), 7));
            assert!((1..=255).contains(&message.topic.len()) && message.value.len() <= 150);
            let decoded = TMessage::read_from_in_protocol(&mut *input(Protocol::Binary, rest)).unwrap();
            assert_eq!((decoded.topic.as_deref(), decoded.value.as_deref()), (Some(message.topic), Some(message.value)));
            rest = &rest[message.raw.len()..];
        }
        assert_eq!((slice.messages().count(), rest.len()), (count, 0));
        through_compact(&slice);
    }
}

/// What a compact peer gets, and puts again, are the same messages.
fn through_compact(slice: &StoredSlice) {
    let mut args = vec![0x18, 1, b'q'];
    Compact::write_field(&mut args, Kind::List, 2, 1);
    Compact::write_list(&mut args, Kind::Struct, slice.count);
    args.extend(to_compact(std::slice::from_ref(slice)).unwrap());
    args.push(0);
    let put = read_put(Protocol::Compact, &args, PutShape::List, 150).unwrap();
    let again = put.batch.seal(7, || MessageId::new(5, 6)).unwrap();
    let parts = |slice: &StoredSlice| -> Vec<_> {
        slice.messages().map(|message| message.map(|m| (m.topic.to_vec(), m.value.to_vec())).unwrap()).collect()
    };
    assert_eq!(parts(&again), parts(slice));
}

fn skip_args(protocol: Protocol, bytes: &[u8], at: &mut usize) -> Result<(), WireError> {
    match protocol {
        Protocol::Binary => skip::<Binary>(bytes, at, Kind::Struct, 0),
        Protocol::Compact => skip::<Compact>(bytes, at, Kind::Struct, 0),
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn damaged_bytes_do_no_damage() {
    let seed = from_environment("HQUEUE_FUZZ_SEED", fastrand::u64(..));
    let iterations = from_environment("HQUEUE_FUZZ_ITERATIONS", 200_000);
    println!("HQUEUE_FUZZ_SEED={seed} HQUEUE_FUZZ_ITERATIONS={iterations}");
    let mut random = fastrand::Rng::with_seed(seed);
    let corpora = PROTOCOLS.map(corpus);
    let before = peak_kib();
    for _ in 0..iterations {
        let which = random.usize(..2);
        let protocol = PROTOCOLS[which];
        let mut bytes = random.choice(&corpora[which]).unwrap().clone();
        let others = random.usize(..2);
        let other = random.choice(&corpora[others]).unwrap();
        damage(&mut bytes, other, &mut random);
        let _ = (detect(&bytes, LIMIT), detect(&framed(&bytes), LIMIT));
        let delimited = delimit(protocol, &bytes, &mut random);
        if let Ok((_, args_at)) = header::read(protocol, &bytes) {
            put(protocol, &bytes[args_at..]);
            let mut end = args_at;
            match (skip_args(protocol, &bytes, &mut end), delimited) {
                (Ok(()), Ok(Progress::Complete(size))) => assert_eq!(size, end),
                (Err(_), Ok(Progress::NeedMore { .. }) | Err(_)) => {}
                disagree => panic!("{disagree:?}"),
            }
        }
        let from = random.usize(..=bytes.len());
        if let Ok(Some(slice)) = StoredSlice::from_stored(Bytes::copy_from_slice(&bytes[from..])) {
            assert!(slice.messages().all(|message| message.is_ok()));
        }
    }
    let grown = peak_kib() - before;
    assert!(grown < 64 * 1024, "{grown} KiB");
}
