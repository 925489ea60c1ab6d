//! Bytes as the generated clients and stock libraries write them.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use hqueue_protocol::generated::{HQueueServiceSyncClient, HQueueSubscriberServiceSyncClient};
use hqueue_protocol::wire::Protocol;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TInputProtocol, TOutputProtocol,
};

pub(crate) const PROTOCOLS: [Protocol; 2] = [Protocol::Binary, Protocol::Compact];

/// Keeps what is written to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written(Rc<RefCell<Vec<u8>>>);

impl Written {
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn input<'a>(protocol: Protocol, bytes: &'a [u8]) -> Box<dyn TInputProtocol + 'a> {
    match protocol {
        Protocol::Binary => Box::new(TBinaryInputProtocol::new(bytes, false)),
        Protocol::Compact => Box::new(TCompactInputProtocol::new(bytes)),
    }
}

pub(crate) fn output(protocol: Protocol, written: &Written) -> Box<dyn TOutputProtocol> {
    match protocol {
        Protocol::Binary => Box::new(TBinaryOutputProtocol::new(written.clone(), true)),
        Protocol::Compact => Box::new(TCompactOutputProtocol::new(written.clone())),
    }
}

type Client<'a> = HQueueServiceSyncClient<Box<dyn TInputProtocol + 'a>, Box<dyn TOutputProtocol>>;

/// The bytes of the call that `call` makes with the generated client; its first call has the sequence id 1.
pub(crate) fn gateway_call(protocol: Protocol, call: impl FnOnce(&mut Client<'_>) -> bool) -> Vec<u8> {
    let written = Written::default();
    let mut client = HQueueServiceSyncClient::new(input(protocol, &[]), output(protocol, &written));
    assert!(call(&mut client), "the call fails for want of a reply");
    written.take()
}

/// The same for `consumeMessages`.
pub(crate) fn consume_call(protocol: Protocol, messages: Vec<hqueue_protocol::generated::TMessage>) -> Vec<u8> {
    use hqueue_protocol::generated::THQueueSubscriberServiceSyncClient;
    let written = Written::default();
    let mut client = HQueueSubscriberServiceSyncClient::new(input(protocol, &[]), output(protocol, &written));
    client.consume_messages(messages).unwrap_err();
    written.take()
}

/// A call in the binary protocol around an encoded body, as in the collection of hostile payloads.
pub(crate) fn binary_call(method: &str, body: &[u8]) -> Vec<u8> {
    let mut call = vec![0x80, 1, 0, 1];
    call.extend(u32::try_from(method.len()).unwrap().to_be_bytes());
    call.extend(method.as_bytes());
    call.extend(1i32.to_be_bytes());
    call.extend(body);
    call
}

/// `bytes` behind their length.
pub(crate) fn framed(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// Arguments whose unknown field 99 is a struct with `levels` further structs in one another.
pub(crate) fn deep(levels: usize) -> Vec<u8> {
    let mut body = vec![0x0c, 0, 99];
    for _ in 0..levels {
        body.extend([0x0c, 0, 1]);
    }
    body.resize(body.len() + levels + 2, 0);
    body
}
