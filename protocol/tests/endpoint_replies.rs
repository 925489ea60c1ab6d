//! What a consumer may send in place of a reply.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod endpoint_support;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use endpoint_support::{Fake, answer_all, batch, hang, message, options, plain_caller, read_call, reply};
use hqueue_protocol::endpoint::{CallError, EndpointCaller, IdleEnd};
use hqueue_protocol::wire::{MessageType, Protocol, Transport};

const LONG: Duration = Duration::from_secs(8);

/// Answers the first connection's call with bytes made from its sequence id, later ones properly.
fn answering(bytes: impl Fn(i32) -> Vec<u8> + Send + Sync + 'static) -> Fake {
    Fake::start(move |number, mut stream| {
        if number > 0 {
            return answer_all(&mut stream, 0);
        }
        if let Some((sequence, _)) = read_call(&mut stream) {
            stream.write_all(&bytes(sequence)).unwrap();
            hang(&stream);
        }
    })
}

async fn refused(bytes: impl Fn(i32) -> Vec<u8> + Send + Sync + 'static) -> String {
    let fake = answering(bytes);
    let mut caller = plain_caller(fake.address, LONG);
    let error = caller.consume(&batch(3, 10)).await.unwrap_err();
    assert!(matches!(error, CallError::BadReply { .. }), "{error}");
    assert!(!error.is_answer() && !error.is_connect() && !error.is_timeout());
    assert_eq!(caller.consume(&batch(3, 10)).await, Ok(0), "the next call goes over a connection of its own");
    assert_eq!(fake.accepted(), 2);
    error.to_string()
}

async fn answered(body: &'static [u8], message_type: MessageType) -> Result<i32, CallError> {
    let fake = answering(move |sequence| message(message_type, sequence, body));
    let mut caller = plain_caller(fake.address, LONG);
    caller.consume(&batch(3, 10)).await
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused_at_once() {
    for head in ["ffffffff", "80000000", "7fffffff", "00000000", "485454502f312e31"] {
        let bytes: Vec<u8> = (0..head.len()).step_by(2).map(|i| u8::from_str_radix(&head[i..i + 2], 16).unwrap()).collect();
        refused(move |_| bytes.clone()).await;
    }
}

#[tokio::test]
async fn frame_lengths_are_checked_before_anything_is_allocated() {
    for length in [-1, i32::MIN, i32::MAX, 0, 65_537] {
        let fake = Fake::start(move |_, mut stream| {
            stream.read_exact(&mut [0; 8]).unwrap();
            stream.write_all(&length.to_be_bytes()).unwrap();
            hang(&stream);
        });
        let mut options = options(fake.address);
        options.transport = Some(Transport::Framed);
        options.protocol = Some(Protocol::Binary);
        let error = EndpointCaller::new(options, Arc::default()).consume(&[]).await.unwrap_err();
        assert!(matches!(error, CallError::BadReply { .. }), "{length}: {error}");
    }
}

#[tokio::test]
async fn sizes_inside_a_reply_are_checked() {
    let huge_text = [&[0x0b, 0, 1][..], &i32::MAX.to_be_bytes()].concat();
    refused(move |sequence| message(MessageType::Exception, sequence, &huge_text)).await;
    let negative_text = [&[0x0b, 0, 1][..], &(-1i32).to_be_bytes()].concat();
    refused(move |sequence| message(MessageType::Exception, sequence, &negative_text)).await;
    let huge_list = [&[0x0f, 0, 9, 0x0c][..], &i32::MAX.to_be_bytes()].concat();
    refused(move |sequence| message(MessageType::Reply, sequence, &[&huge_list[..], &[0; 70_000]].concat())).await;
    let deep = [&[0x0c, 0, 9][..], &[0x0c, 0, 1].repeat(200)].concat();
    let why = refused(move |sequence| message(MessageType::Reply, sequence, &deep)).await;
    assert!(why.contains("nested deeper than 64"), "{why}");
    let long = [&[0x0b, 0, 1][..], &70_000i32.to_be_bytes(), &[b'x'; 70_000]].concat();
    let why = refused(move |sequence| message(MessageType::Exception, sequence, &long)).await;
    assert!(why.contains("the limit is 65536 bytes"), "{why}");
}

#[tokio::test]
async fn a_reply_to_another_call_is_refused() {
    let why = refused(|sequence| reply(sequence - 1, 0)).await;
    assert!(why.contains("the sequence id is 0 in place of 1"), "{why}");
    refused(|sequence| message(MessageType::Call, sequence, &[0])).await;
}

#[tokio::test]
async fn every_number_is_handed_on() {
    for value in [0, 3, -1, -2, -3, 11, i32::MAX, i32::MIN] {
        let fake = answering(move |sequence| reply(sequence, value));
        assert_eq!(plain_caller(fake.address, LONG).consume(&batch(3, 10)).await, Ok(value));
    }
}

#[tokio::test]
async fn a_result_without_a_number_is_an_exception() {
    let error = answered(&[0], MessageType::Reply).await.unwrap_err();
    assert!(error.is_answer() && error.to_string().ends_with("the result has no number"), "{error}");
    let declared = answered(&[0x0c, 0, 1, 0x0b, 0, 1, 0, 0, 0, 1, b'x', 0, 0], MessageType::Reply).await.unwrap_err();
    assert!(declared.is_answer() && declared.to_string().ends_with("but a field 1"), "{declared}");
    let wide = answered(&[0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], MessageType::Reply).await.unwrap_err();
    assert!(wide.is_answer(), "{wide}");
}

#[tokio::test]
async fn an_exception_is_told_in_its_own_words() {
    let body = b"\x0b\0\x01\0\0\0\x04boom\x08\0\x02\0\0\0\x06\0";
    let error = answered(body, MessageType::Exception).await.unwrap_err();
    assert!(error.to_string().ends_with("answered with an exception: boom (internal error)"), "{error}");
    let bare = answered(&[0], MessageType::Exception).await.unwrap_err();
    assert!(bare.to_string().ends_with("an exception: unknown"), "{bare}");
    let long = Box::leak([&b"\x0b\0\x01\0\0\xc3\x50"[..], &"é".repeat(25_000).into_bytes(), b"\0"].concat().into_boxed_slice());
    let text = answered(long, MessageType::Exception).await.unwrap_err().to_string();
    assert!(text.contains(&format!("{}… (unknown)", "é".repeat(400))), "{text}");
}

#[tokio::test]
async fn a_reply_without_the_version_word_is_taken() {
    let fake = answering(|sequence| {
        [&15u32.to_be_bytes()[..], b"consumeMessages", &[2], &sequence.to_be_bytes(), &[8, 0, 0, 0, 0, 0, 5, 0]].concat()
    });
    assert_eq!(plain_caller(fake.address, LONG).consume(&batch(9, 10)).await, Ok(5));
}

#[tokio::test]
async fn a_reply_may_come_byte_by_byte() {
    let fake = Fake::start(|_, mut stream| {
        while let Some((sequence, _)) = read_call(&mut stream) {
            reply(sequence, 2).iter().for_each(|byte| stream.write_all(&[*byte]).unwrap());
        }
    });
    let mut caller = plain_caller(fake.address, LONG);
    for _ in 0..3 {
        assert_eq!(caller.consume(&batch(3, 10)).await, Ok(2));
    }
    assert_eq!(fake.accepted(), 1);
}

#[tokio::test]
async fn what_follows_a_reply_does_not_answer_the_next_call() {
    let fake = answering(|sequence| [reply(sequence, 1), reply(sequence + 1, -3)].concat());
    let mut caller = plain_caller(fake.address, LONG);
    assert_eq!(caller.consume(&batch(3, 10)).await, Ok(1));
    assert_eq!(caller.consume(&batch(3, 10)).await, Ok(0));
    assert_eq!(fake.accepted(), 2);
}

/// A single byte, which is gone once it is read: whoever waits for the end of an idle connection must not make it look quiet.
#[tokio::test]
async fn a_byte_that_comes_while_a_connection_is_idle_ends_it() {
    let fake = Fake::start(|number, mut stream| {
        while let Some((sequence, _)) = read_call(&mut stream) {
            stream.write_all(&reply(sequence, 0)).unwrap();
            if number == 0 {
                std::thread::sleep(Duration::from_millis(50));
                stream.write_all(&[0x80]).unwrap();
            }
        }
    });
    let mut caller = plain_caller(fake.address, LONG);
    assert_eq!(caller.idle_ends().await, None, "there is no connection yet");
    assert_eq!(caller.consume(&batch(1, 10)).await, Ok(0));
    let too_short = tokio::time::timeout(Duration::from_millis(1), caller.idle_ends()).await;
    assert!(too_short.is_err(), "{too_short:?}");
    assert_eq!(caller.idle_ends().await, Some(IdleEnd::Spoke));
    assert_eq!(caller.consume(&batch(1, 10)).await, Ok(0));
    assert_eq!(fake.accepted(), 2, "over another connection");
}

/// The same byte right behind a reply.
#[tokio::test]
async fn a_byte_behind_a_reply_ends_the_connection() {
    let fake = Fake::start(|number, mut stream| {
        while let Some((sequence, _)) = read_call(&mut stream) {
            let more: &[u8] = if number == 0 { &[0x80] } else { &[] };
            stream.write_all(&[&reply(sequence, 0), more].concat()).unwrap();
        }
    });
    let mut caller = plain_caller(fake.address, LONG);
    assert_eq!(caller.consume(&batch(1, 10)).await, Ok(0));
    assert_eq!(caller.idle_ends().await, Some(IdleEnd::Spoke));
    assert_eq!(caller.consume(&batch(1, 10)).await, Ok(0));
    assert_eq!(fake.accepted(), 2, "over another connection");
}
