//! The bytes of one side: how a put and a push are wrapped. All sides have frames with four bytes of length.

use std::fmt::Debug;

use hqueue_protocol::wire::header::{self, MessageHeader};
use hqueue_protocol::wire::{MessageType, Protocol};

use crate::failure::{Failure, Outcome};
use crate::messages::{PutShape, PutTemplate};

/// How a side wants to be spoken to.
pub trait Dialect: Debug + Send + Sync + 'static {
    /// A put of this shape.
    fn put(&self, queue: &str, shape: PutShape) -> PutTemplate;

    /// Reads the answer to a put; an error if it is a refusal.
    fn check_answer(&self, body: &[u8]) -> Outcome<()>;

    /// Hands the runs of messages of a push to `take`, each with its count.
    fn read_push(&self, body: &[u8], take: &mut dyn FnMut(&[u8], usize)) -> Outcome<()>;

    /// Appends the answer to the push with this body: all taken.
    fn answer_push(&self, body: &[u8], out: &mut Vec<u8>) -> Outcome<()>;
}

/// The floor's own frames (see [`crate::floor`]).
#[derive(Clone, Copy, Debug)]
pub struct FloorDialect;

impl Dialect for FloorDialect {
    fn put(&self, _queue: &str, shape: PutShape) -> PutTemplate {
        let mut head = vec![0; 6];
        head.extend_from_slice(&count(shape.messages));
        PutTemplate::new(&head, 4, shape, &[])
    }

    fn check_answer(&self, body: &[u8]) -> Outcome<()> {
        if body.len() == 4 { Ok(()) } else { Err(Failure::Side("the floor answered something else".to_owned())) }
    }

    fn read_push(&self, mut body: &[u8], take: &mut dyn FnMut(&[u8], usize)) -> Outcome<()> {
        let bad = || Failure::Side("the floor pushed something else".to_owned());
        while !body.is_empty() {
            let (length, rest) = body.split_first_chunk().ok_or_else(bad)?;
            let (put, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(bad)?;
            let (_, put) = put.split_first_chunk::<2>().ok_or_else(bad)?;
            let (count, messages) = put.split_first_chunk().ok_or_else(bad)?;
            take(messages, u32::from_be_bytes(*count) as usize);
            body = rest;
        }
        Ok(())
    }

    fn answer_push(&self, _body: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
        out.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0]);
        Ok(())
    }
}

/// The floor's frames with the number of the queue in each put, for a client that runs in a process of its own.
#[derive(Clone, Copy, Debug)]
pub struct BridgeDialect;

impl Dialect for BridgeDialect {
    fn put(&self, queue: &str, shape: PutShape) -> PutTemplate {
        let number: u16 = queue.trim_start_matches(|sign: char| !sign.is_ascii_digit()).parse().unwrap_or_default();
        let mut head = vec![0; 4];
        head.extend_from_slice(&number.to_be_bytes());
        head.extend_from_slice(&[0; 2]);
        head.extend_from_slice(&count(shape.messages));
        PutTemplate::new(&head, 6, shape, &[])
    }

    fn check_answer(&self, body: &[u8]) -> Outcome<()> {
        FloorDialect.check_answer(body)
    }

    fn read_push(&self, body: &[u8], take: &mut dyn FnMut(&[u8], usize)) -> Outcome<()> {
        FloorDialect.read_push(body, take)
    }

    fn answer_push(&self, body: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
        FloorDialect.answer_push(body, out)
    }
}

/// HQueue's contract: framed Thrift in the binary protocol, written and read without generated code.
#[derive(Clone, Copy, Debug)]
pub struct ThriftDialect;

const PUT: &[u8] = b"putMessagesWithPid";
const PUSH: &[u8] = b"consumeMessages";
/// Field 1 of the arguments: a list of structs.
const MESSAGES_FIELD: [u8; 4] = [0x0f, 0, 1, 0x0c];

impl Dialect for ThriftDialect {
    fn put(&self, queue: &str, shape: PutShape) -> PutTemplate {
        let mut head = vec![0; 4];
        header::write(&mut head, Protocol::Binary, &MessageHeader { method: PUT, message_type: MessageType::Call, sequence: 1 });
        head.extend_from_slice(&[0x0b, 0, 1]);
        head.extend_from_slice(&count(queue.len()));
        head.extend_from_slice(queue.as_bytes());
        head.extend_from_slice(&[0x06, 0, 2]);
        let partition_at = head.len();
        head.extend_from_slice(&[0, 0, 0x0f, 0, 3, 0x0c]);
        head.extend_from_slice(&count(shape.messages));
        PutTemplate::new(&head, partition_at, shape, &[0])
    }

    fn check_answer(&self, body: &[u8]) -> Outcome<()> {
        let (header, end) = header::read(Protocol::Binary, body).map_err(malformed)?;
        let result = body.get(end..).unwrap_or_default();
        if header.message_type == MessageType::Reply && result == [0] {
            return Ok(());
        }
        Err(Failure::Side(format!("a put was refused: {}", String::from_utf8_lossy(result))))
    }

    fn read_push(&self, body: &[u8], take: &mut dyn FnMut(&[u8], usize)) -> Outcome<()> {
        let (header, end) = header::read(Protocol::Binary, body).map_err(malformed)?;
        if header.method != PUSH {
            return Err(Failure::Side(format!("a call of {}", String::from_utf8_lossy(header.method))));
        }
        let args = body.get(end..).unwrap_or_default();
        let bad = || Failure::Side("a push without a list of messages".to_owned());
        let rest = args.strip_prefix(&MESSAGES_FIELD).ok_or_else(bad)?;
        let (count, messages) = rest.split_first_chunk().ok_or_else(bad)?;
        take(messages, u32::from_be_bytes(*count) as usize);
        Ok(())
    }

    fn answer_push(&self, body: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
        let (call, _) = header::read(Protocol::Binary, body).map_err(malformed)?;
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        header::write(out, Protocol::Binary, &MessageHeader { message_type: MessageType::Reply, ..call });
        out.extend_from_slice(&[0x08, 0, 0, 0, 0, 0, 0, 0]);
        let length = count(out.len() - from - 4);
        if let Some(prefix) = out.get_mut(from..).and_then(<[u8]>::first_chunk_mut) {
            *prefix = length;
        }
        Ok(())
    }
}

fn count(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes()
}

fn malformed(error: impl std::fmt::Display) -> Failure {
    Failure::Side(format!("no Thrift: {error}"))
}
