//! Our bytes are those of the generated code, for every method, both ways, in both protocols.

use std::collections::BTreeMap;

use thrift::protocol::{TMessageIdentifier, TMessageType};
use thrift::server::TProcessor;

use super::*;
use crate::generated::*;

/// A value with something in every field.
trait Sample {
    fn sample() -> Self;
}

macro_rules! samples {
    ($($t:ty = $value:expr;)*) => { $(impl Sample for $t { fn sample() -> Self { $value } })* };
}

fn texts() -> Vec<Vec<u8>> {
    vec![b"a".to_vec(), vec![0, 255]]
}

samples! {
    () = ();
    bool = true;
    i16 = 300;
    i32 = 70_000;
    i64 = 1 << 40;
    String = "ü".to_owned();
    Vec<i16> = vec![0, i16::MAX];
    Vec<u8> = vec![0, 0xff, b'q'];
    Vec<Vec<u8>> = texts();
    BTreeMap<String, String> = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("é".to_owned(), String::new())]);
    Vec<String> = vec!["é".to_owned(), String::new()];
    TMessageID = TMessageID::new(1_700_000_000_000, 12);
    TMessage = TMessage::new(TMessageID::sample(), 3, b"t".to_vec(), vec![1, 2], BTreeMap::from([("h".to_owned(), vec![9])]));
    Vec<TMessage> = vec![TMessage::sample(), TMessage::default()];
    TMessageScan = TMessageScan::new(TMessageID::sample(), None, texts());
    TScanReport = TScanReport::new(7, 1 << 40);
    TPutResult = TPutResult::new(5, vec![TMessageID::sample()]);
    TRegistered = TRegistered::new(9, 10_000);
    TRegistration = TRegistration { start_position: Some("latest".to_owned()), partitions: Some(vec![1, 2]), ..Default::default() };
    TQueueSpec = TQueueSpec { ttl_seconds: Some(3), ..Default::default() };
    TQueueDescription = TQueueDescription { name: Some(b"q".to_vec()), ..Default::default() };
    Vec<TQueueDescription> = vec![TQueueDescription::sample()];
    TSubscriberSpec = TSubscriberSpec { topics: Some(texts()), ..Default::default() };
    TSubscriptionStatus = TSubscriptionStatus { lag_exact: Some(true), lag_seconds: Some(1.5.into()), ..Default::default() };
    Vec<TSubscriptionStatus> = vec![TSubscriptionStatus::sample(), TSubscriptionStatus::default()];
    TQueueStatus = TQueueStatus { subscriptions: Some(Vec::sample()), ..Default::default() };
    TClusterStatus = TClusterStatus { brokers: Some(vec![TBrokerStatus::default()]), ..Default::default() };
    TFetch = TFetch { max_messages: Some(7), wait_ms: Some(20), ..Default::default() };
    TFetched = TFetched { messages: Some(Vec::sample()), next_i_d: Some(TMessageID::sample()) };
    Vec<TDeadLetterID> = vec![TDeadLetterID { partition: Some(3), id: Some(TMessageID::sample()) }];
    TRedriven = TRedriven { accepted: Some(5), more: Some(true), error: None };
    TKeptLetter = TKeptLetter { subscriber: Some(b"s".to_vec()), attempts: Some(3), ..Default::default() };
    Vec<TKeptLetter> = vec![TKeptLetter::sample()];
    TExplanation = TExplanation { topic: Some(vec![0, 255]), subscriptions: Some(vec![TMessageStanding::default()]), ..Default::default() };
    HQueueError = HQueueError::new(2, "no such queue".to_owned());
}

/// Answers everything with a sample, or refuses everything.
struct Handler {
    refuses: bool,
}

impl Handler {
    fn answer<T: Sample>(&self) -> thrift::Result<T> {
        if self.refuses { Err(thrift::Error::User(Box::new(HQueueError::sample()))) } else { Ok(T::sample()) }
    }
}

fn output(protocol: Protocol, bytes: &mut Vec<u8>) -> Box<dyn TOutputProtocol + '_> {
    match protocol {
        Protocol::Binary => Box::new(TBinaryOutputProtocol::new(bytes, true)),
        Protocol::Compact => Box::new(TCompactOutputProtocol::new(bytes)),
    }
}

fn input(protocol: Protocol, bytes: &[u8]) -> Box<dyn TInputProtocol + '_> {
    match protocol {
        Protocol::Binary => Box::new(TBinaryInputProtocol::new(bytes, true)),
        Protocol::Compact => Box::new(TCompactInputProtocol::new(bytes)),
    }
}

/// A whole message around an encoded struct.
fn message(protocol: Protocol, name: &str, kind: TMessageType, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    output(protocol, &mut bytes).write_message_begin(&TMessageIdentifier::new(name, kind, 1)).unwrap();
    bytes.extend_from_slice(body);
    bytes
}

macro_rules! same_bytes {
    ($client:ident, $handler:ident, $processor:ident:
     $($marker:ident $call:ident $handle:ident $args:ident ($($field:ident: $t:ty),*) -> $success:ty;)*) => {
        impl $handler for Handler {
            $(fn $handle(&self, $($field: $t),*) -> thrift::Result<$success> {
                $(assert_eq!($field, <$t>::sample());)*
                self.answer()
            })*
        }

        $(#[test]
        fn $call() {
            for protocol in [Protocol::Binary, Protocol::Compact] {
                let args = $args { $($field: <$t>::sample()),* };
                let ours = $marker::encode_args(protocol, &args);
                let call = message(protocol, $marker::NAME, TMessageType::Call, &ours);
                let mut theirs = Vec::new();
                // The reply never comes: only what the client sent is of interest.
                let _ = $client::new(input(protocol, &[]), output(protocol, &mut theirs)).$call($(args.$field.clone()),*);
                assert_eq!(call, theirs, "the call in {protocol:?}");
                assert_eq!($marker::decode_args(protocol, &ours).unwrap(), args);

                for refuses in [false, true] {
                    let result = if refuses { Err(HQueueError::sample()) } else { Ok(<$success>::sample()) };
                    let ours = $marker::encode_result(protocol, &result);
                    let mut theirs = Vec::new();
                    let processor = $processor::new(Handler { refuses });
                    processor.process(&mut input(protocol, &call), &mut output(protocol, &mut theirs)).unwrap();
                    assert_eq!(message(protocol, $marker::NAME, TMessageType::Reply, &ours), theirs, "the reply in {protocol:?}");
                    assert_eq!($marker::decode_result(protocol, &ours).unwrap(), result);
                }
            }
        })*
    };
}

same_bytes! {
    HQueueServiceSyncClient, HQueueServiceSyncHandler, HQueueServiceSyncProcessor:
    MessageScannerOpen message_scanner_open handle_message_scanner_open
        MessageScannerOpenArgs(queue_name: Text, partition: i16, scan: TMessageScan) -> ScannerID;
    MessageScannerGet message_scanner_get handle_message_scanner_get MessageScannerGetArgs(id: ScannerID) -> TMessage;
    MessageScannerGetList message_scanner_get_list handle_message_scanner_get_list
        MessageScannerGetListArgs(id: ScannerID, nb_messages: i32) -> Vec<TMessage>;
    MessageScannerClose message_scanner_close handle_message_scanner_close MessageScannerCloseArgs(id: ScannerID) -> ();
    PutMessage put_message handle_put_message PutMessageArgs(queue_name: Text, message: TMessage) -> ();
    PutMessages put_messages handle_put_messages PutMessagesArgs(queue_name: Text, messages: Vec<TMessage>) -> ();
    PutMessageWithPid put_message_with_pid handle_put_message_with_pid
        PutMessageWithPidArgs(queue_name: Text, partition: i16, message: TMessage) -> ();
    PutMessagesWithPid put_messages_with_pid handle_put_messages_with_pid
        PutMessagesWithPidArgs(queue_name: Text, partition: i16, messages: Vec<TMessage>) -> ();
    GetQueueLocations get_queue_locations handle_get_queue_locations GetQueueLocationsArgs(queue_name: Text) -> Vec<Text>;
    GetDataLocations get_data_locations handle_get_data_locations GetDataLocationsArgs(queue_name: Text) -> Vec<Text>;
    PutMessagesForIds put_messages_for_ids handle_put_messages_for_ids
        PutMessagesForIdsArgs(queue_name: Text, partition: i16, messages: Vec<TMessage>) -> TPutResult;
    Fetch fetch handle_fetch FetchArgs(queue_name: Text, partition: i16, what: TFetch) -> TFetched;
    Commit commit handle_commit CommitArgs(queue_name: Text, subscriber: Text, partition: i16, next_id: TMessageID) -> ();
    Subscribe subscribe handle_subscribe SubscribeArgs(queue_name: Text, registration: TRegistration) -> TRegistered;
    Renew renew handle_renew RenewArgs(registration_id: i64) -> ();
    Unsubscribe unsubscribe handle_unsubscribe UnsubscribeArgs(registration_id: i64) -> ();
    MessageScannerReport message_scanner_report handle_message_scanner_report MessageScannerReportArgs(id: ScannerID) -> TScanReport;
}

same_bytes! {
    HQueueAdminServiceSyncClient, HQueueAdminServiceSyncHandler, HQueueAdminServiceSyncProcessor:
    CreateQueue create_queue handle_create_queue CreateQueueArgs(spec: TQueueSpec) -> Vec<String>;
    ListQueues list_queues handle_list_queues ListQueuesArgs() -> Vec<TQueueDescription>;
    DescribeQueue describe_queue handle_describe_queue DescribeQueueArgs(queue_name: Text) -> TQueueDescription;
    DisableQueue disable_queue handle_disable_queue DisableQueueArgs(queue_name: Text) -> ();
    EnableQueue enable_queue handle_enable_queue EnableQueueArgs(queue_name: Text) -> ();
    DropQueue drop_queue handle_drop_queue DropQueueArgs(queue_name: Text) -> ();
    TruncateQueue truncate_queue handle_truncate_queue TruncateQueueArgs(queue_name: Text) -> ();
    AddSubscriber add_subscriber handle_add_subscriber AddSubscriberArgs(queue_name: Text, spec: TSubscriberSpec) -> ();
    DeleteSubscriber delete_subscriber handle_delete_subscriber
        DeleteSubscriberArgs(queue_name: Text, subscriber: Text) -> ();
    SetSubscriber set_subscriber handle_set_subscriber
        SetSubscriberArgs(queue_name: Text, subscriber: Text, options: BTreeMap<String, String>) -> ();
    PauseSubscriber pause_subscriber handle_pause_subscriber PauseSubscriberArgs(queue_name: Text, subscriber: Text) -> ();
    ResumeSubscriber resume_subscriber handle_resume_subscriber
        ResumeSubscriberArgs(queue_name: Text, subscriber: Text) -> ();
    SeekSubscriber seek_subscriber handle_seek_subscriber
        SeekSubscriberArgs(queue_name: Text, subscriber: Text, position: String, partitions: Vec<i16>) -> ();
    RedriveDeadLetters redrive_dead_letters handle_redrive_dead_letters
        RedriveDeadLettersArgs(queue_name: Text, subscriber: Text, ids: Vec<TDeadLetterID>) -> TRedriven;
    DropDeadLetters drop_dead_letters handle_drop_dead_letters
        DropDeadLettersArgs(queue_name: Text, subscriber: Text, ids: Vec<TDeadLetterID>) -> i32;
    ExplainMessage explain_message handle_explain_message
        ExplainMessageArgs(queue_name: Text, partition: i16, id: TMessageID, subscriber: Text) -> TExplanation;
    ListSubscribers list_subscribers handle_list_subscribers ListSubscribersArgs(queue_name: Text) -> Vec<TSubscriptionStatus>;
    QueueStatus queue_status handle_queue_status QueueStatusArgs(queue_name: Text) -> TQueueStatus;
    ClusterStatus cluster_status handle_cluster_status ClusterStatusArgs() -> TClusterStatus;
    MovePartition move_partition handle_move_partition
        MovePartitionArgs(queue_name: Text, partition: i16, broker: String) -> ();
    SwitchBalancer switch_balancer handle_switch_balancer SwitchBalancerArgs(on: bool) -> ();
    IsBalancerOn is_balancer_on handle_is_balancer_on IsBalancerOnArgs() -> bool;
}

same_bytes! {
    HQueueBrokerServiceSyncClient, HQueueBrokerServiceSyncHandler, HQueueBrokerServiceSyncProcessor:
    AddDeadLetter add_dead_letter handle_add_dead_letter AddDeadLetterArgs(queue_name: Text, letter: TMessage) -> ();
    Redeliver redeliver handle_redeliver
        RedeliverArgs(queue_name: Text, subscriber: Text, partition: i16, messages: Vec<TMessage>) -> i32;
    FindDeadLetters find_dead_letters handle_find_dead_letters
        FindDeadLettersArgs(queue_name: Text, partition: i16, id: TMessageID) -> Vec<TKeptLetter>;
}

#[test]
fn consume_messages() {
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let args = ConsumeMessagesArgs { messages: Sample::sample() };
        let ours = ConsumeMessages::encode_args(protocol, &args);
        let call = message(protocol, ConsumeMessages::NAME, TMessageType::Call, &ours);
        let mut theirs = Vec::new();
        let client = HQueueSubscriberServiceSyncClient::new(input(protocol, &[]), output(protocol, &mut theirs));
        let _ = { client }.consume_messages(args.messages.clone());
        assert_eq!(call, theirs);
        assert_eq!(ConsumeMessages::decode_args(protocol, &ours), Ok(args));
        let mut theirs = Vec::new();
        let processor = HQueueSubscriberServiceSyncProcessor::new(Handler { refuses: false });
        processor.process(&mut input(protocol, &call), &mut output(protocol, &mut theirs)).unwrap();
        let ours = ConsumeMessages::encode_result(protocol, &Ok(i32::sample()));
        assert_eq!(message(protocol, ConsumeMessages::NAME, TMessageType::Reply, &ours), theirs);
    }
}

impl HQueueSubscriberServiceSyncHandler for Handler {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        assert_eq!(messages, Vec::<TMessage>::sample());
        self.answer()
    }
}

#[test]
fn what_is_missing_or_broken_is_named() {
    let missing = PutMessage::decode_args(Protocol::Binary, &[0]).unwrap_err();
    assert_eq!(missing, RpcError::MissingArgument { method: "putMessage", argument: "queue_name" });
    let number_for_a_name = Renew::encode_args(Protocol::Binary, &RenewArgs { registration_id: 1 });
    let wrong = DropQueue::decode_args(Protocol::Binary, &number_for_a_name).unwrap_err();
    assert_eq!(wrong, RpcError::MissingArgument { method: "dropQueue", argument: "queue_name" });
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let none = QueueStatus::decode_result(protocol, &[0]).unwrap_err();
        assert_eq!(none, RpcError::MissingResult { method: "queueStatus" });
        assert_eq!(DropQueue::decode_result(protocol, &[0]).unwrap(), Ok(()));
        assert!(matches!(QueueStatus::decode_result(protocol, &[]), Err(RpcError::Malformed { .. })));
    }
}

#[test]
fn a_list_of_the_wrong_type_is_no_list() {
    // field 0, a list of three i16 where texts belong
    let numbers = [0x0f, 0, 0, 0x06, 0, 0, 0, 3, 0, 1, 0, 2, 0, 3, 0];
    assert!(matches!(GetQueueLocations::decode_result(Protocol::Binary, &numbers), Err(RpcError::Malformed { .. })));
}

#[test]
fn a_cut_result_never_panics() {
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let whole = MessageScannerGetList::encode_result(protocol, &Ok(Sample::sample()));
        for end in 0..whole.len() {
            assert!(MessageScannerGetList::decode_result(protocol, &whole[..end]).is_err(), "{end} of {} bytes", whole.len());
        }
    }
}
