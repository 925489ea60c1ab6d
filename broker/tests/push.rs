//! A put is pushed to a fixed endpoint, and what its answer says is done.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hqueue_broker::{Broker, Options};
use hqueue_protocol::client::{ClientOptions, RpcClient};
use hqueue_protocol::generated::{TMessage, TQueueSpec, TSubscriberSpec};
use hqueue_protocol::rpc;
use hqueue_protocol::server::{Call, Reply, ReplyFuture, Server, ServerOptions, Service};
use tokio::net::TcpListener;

/// Answers `consumeMessages` by a script, then 0, and keeps the values that it was sent.
#[derive(Debug, Default)]
struct Consumer {
    script: Mutex<VecDeque<i32>>,
    calls: Mutex<Vec<Vec<String>>>,
}

impl Service for Consumer {
    fn overlaps(&self, _: &[u8]) -> bool {
        false
    }

    fn call(&self, call: Call) -> ReplyFuture {
        let values = values(&call.args);
        let mut answer = 0;
        if !values.is_empty() {
            answer = self.script.lock().unwrap().pop_front().unwrap_or(0);
            self.calls.lock().unwrap().push(values);
        }
        let mut result = vec![8, 0, 0];
        result.extend(answer.to_be_bytes());
        result.push(0);
        Box::pin(std::future::ready(Reply::Result(vec![Bytes::from(result)])))
    }
}

/// The values of the messages in the arguments of `consumeMessages`: field 1, a list of structs.
fn values(args: &[u8]) -> Vec<String> {
    use thrift::protocol::{TBinaryInputProtocol, TInputProtocol, TSerializable};
    let mut input = TBinaryInputProtocol::new(args, true);
    input.read_struct_begin().unwrap();
    input.read_field_begin().unwrap();
    let list = input.read_list_begin().unwrap();
    (0..list.size)
        .map(|_| String::from_utf8(TMessage::read_from_in_protocol(&mut input).unwrap().value.unwrap()).unwrap())
        .collect()
}

async fn serve(consumer: &Arc<Consumer>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(ServerOptions::default(), Arc::clone(consumer) as _).unwrap();
    tokio::spawn(async move { server.run(listener, std::future::pending()).await });
    address
}

async fn until(what: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(tokio::time::Instant::now() < deadline, "not in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn message(value: &str) -> TMessage {
    TMessage { topic: Some(b"t".to_vec()), value: Some(value.as_bytes().to_vec()), ..TMessage::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_result_goes_on_behind_what_was_consumed() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { data: folder.path().to_owned(), listen: ([127, 0, 0, 1], 0).into(), http: None, ..Options::default() };
    let broker = Broker::start(options).await.unwrap();
    let client = RpcClient::new(ClientOptions::new(vec![broker.address().to_string()]));
    let spec = TQueueSpec { name: Some(b"q".to_vec()), partitions: Some(1), ttl_seconds: Some(60), ..TQueueSpec::default() };
    client.call::<rpc::CreateQueue>(&rpc::CreateQueueArgs { spec }).await.unwrap();

    let consumer = Arc::new(Consumer::default());
    consumer.script.lock().unwrap().extend([-1, 2, -2, 1]);
    let address = serve(&consumer).await;
    let messages = (0..5).map(|n| message(&n.to_string())).collect();
    let args = rpc::PutMessagesForIdsArgs { queue_name: b"q".to_vec(), partition: 0, messages };
    let put = client.call::<rpc::PutMessagesForIds>(&args).await.unwrap();
    assert_eq!(put.ids.unwrap().len(), 5);

    let spec = TSubscriberSpec {
        name: Some(b"s".to_vec()),
        addresses: Some(vec![address.to_string()]),
        start_position: Some("earliest".to_owned()),
        options: Some([("retry-min".to_owned(), "20ms".to_owned())].into()),
        ..TSubscriberSpec::default()
    };
    client.call::<rpc::AddSubscriber>(&rpc::AddSubscriberArgs { queue_name: b"q".to_vec(), spec }).await.unwrap();

    let all = ["0", "1", "2", "3", "4"];
    let wanted: Vec<Vec<String>> = [&all[..], &all[..], &all[2..], &all[2..], &all[3..]]
        .iter()
        .map(|c| c.iter().map(|s| (*s).to_owned()).collect())
        .collect();
    until(|| consumer.calls.lock().unwrap().len() >= wanted.len()).await;
    assert_eq!(*consumer.calls.lock().unwrap(), wanted);
    broker.stop().await;
}
