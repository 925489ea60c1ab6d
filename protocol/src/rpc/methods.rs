//! The table of methods.

use std::collections::BTreeMap;

use thrift::protocol::{TInputProtocol, TOutputProtocol};

use super::{Arguments, Method, WireValue, read_fields, write_field};
use crate::generated::*;

/// A line is: the marker, the name of the method, the name of the arguments' struct, the arguments with their field numbers and
/// the type of the result. What the methods do stands in `idl/hqueue.thrift`.
macro_rules! methods {
    ($(
        $marker:ident = $name:literal $args:ident ( $($id:literal: $field:ident: $t:ty),* ) -> $success:ty;
    )*) => { $(
        #[doc = concat!("`", $name, "`")]
        #[derive(Clone, Copy, Debug)]
        pub struct $marker;

        #[doc = concat!("What `", $name, "` takes.")]
        #[derive(Clone, Debug, PartialEq)]
        pub struct $args {
            $(pub $field: $t,)*
        }

        impl Method for $marker {
            const NAME: &'static str = $name;
            const AT_OWNER: &'static str = concat!("owner:", $name);
            type Args = $args;
            type Success = $success;
        }

        impl Arguments for $args {
            fn write_fields(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
                $(write_field(out, $id, &self.$field)?;)*
                let _ = out;
                Ok(())
            }

            fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Result<Self, &'static str>> {
                $(let mut $field = <$t>::absent();)*
                read_fields(input, |input, field| match field {
                    $(($id, ttype) if ttype == <$t>::TYPE => <$t>::read(input).map(|v| $field = Some(v)),)*
                    (_, ttype) => input.skip(ttype),
                })?;
                $(let Some($field) = $field else { return Ok(Err(stringify!($field))) };)*
                Ok(Ok(Self { $($field),* }))
            }
        }
    )* };
}

// HQueueSubscriberService, which declares no error
methods! {
    ConsumeMessages = "consumeMessages" ConsumeMessagesArgs(1: messages: Vec<TMessage>) -> i32;
}

// HQueueService
methods! {
    MessageScannerOpen = "messageScannerOpen"
        MessageScannerOpenArgs(1: queue_name: Text, 2: partition: i16, 3: scan: TMessageScan) -> ScannerID;
    MessageScannerGet = "messageScannerGet" MessageScannerGetArgs(1: id: ScannerID) -> TMessage;
    MessageScannerGetList = "messageScannerGetList"
        MessageScannerGetListArgs(1: id: ScannerID, 2: nb_messages: i32) -> Vec<TMessage>;
    MessageScannerClose = "messageScannerClose" MessageScannerCloseArgs(1: id: ScannerID) -> ();
    PutMessage = "putMessage" PutMessageArgs(1: queue_name: Text, 2: message: TMessage) -> ();
    PutMessages = "putMessages" PutMessagesArgs(1: queue_name: Text, 2: messages: Vec<TMessage>) -> ();
    PutMessageWithPid = "putMessageWithPid"
        PutMessageWithPidArgs(1: queue_name: Text, 2: partition: i16, 3: message: TMessage) -> ();
    PutMessagesWithPid = "putMessagesWithPid"
        PutMessagesWithPidArgs(1: queue_name: Text, 2: partition: i16, 3: messages: Vec<TMessage>) -> ();
    GetQueueLocations = "getQueueLocations" GetQueueLocationsArgs(1: queue_name: Text) -> Vec<Text>;
    GetDataLocations = "getDataLocations" GetDataLocationsArgs(1: queue_name: Text) -> Vec<Text>;
    PutMessagesForIds = "putMessagesForIds"
        PutMessagesForIdsArgs(1: queue_name: Text, 2: partition: i16, 3: messages: Vec<TMessage>) -> TPutResult;
    Fetch = "fetch" FetchArgs(1: queue_name: Text, 2: partition: i16, 3: what: TFetch) -> TFetched;
    Commit = "commit" CommitArgs(1: queue_name: Text, 2: subscriber: Text, 3: partition: i16, 4: next_id: TMessageID) -> ();
    Subscribe = "subscribe" SubscribeArgs(1: queue_name: Text, 2: registration: TRegistration) -> TRegistered;
    Renew = "renew" RenewArgs(1: registration_id: i64) -> ();
    Unsubscribe = "unsubscribe" UnsubscribeArgs(1: registration_id: i64) -> ();
    MessageScannerReport = "messageScannerReport" MessageScannerReportArgs(1: id: ScannerID) -> TScanReport;
}

// HQueueAdminService
methods! {
    CreateQueue = "createQueue" CreateQueueArgs(1: spec: TQueueSpec) -> Vec<String>;
    ListQueues = "listQueues" ListQueuesArgs() -> Vec<TQueueDescription>;
    DescribeQueue = "describeQueue" DescribeQueueArgs(1: queue_name: Text) -> TQueueDescription;
    DisableQueue = "disableQueue" DisableQueueArgs(1: queue_name: Text) -> ();
    EnableQueue = "enableQueue" EnableQueueArgs(1: queue_name: Text) -> ();
    DropQueue = "dropQueue" DropQueueArgs(1: queue_name: Text) -> ();
    TruncateQueue = "truncateQueue" TruncateQueueArgs(1: queue_name: Text) -> ();
    AddSubscriber = "addSubscriber" AddSubscriberArgs(1: queue_name: Text, 2: spec: TSubscriberSpec) -> ();
    DeleteSubscriber = "deleteSubscriber" DeleteSubscriberArgs(1: queue_name: Text, 2: subscriber: Text) -> ();
    SetSubscriber = "setSubscriber"
        SetSubscriberArgs(1: queue_name: Text, 2: subscriber: Text, 3: options: BTreeMap<String, String>) -> ();
    PauseSubscriber = "pauseSubscriber" PauseSubscriberArgs(1: queue_name: Text, 2: subscriber: Text) -> ();
    ResumeSubscriber = "resumeSubscriber" ResumeSubscriberArgs(1: queue_name: Text, 2: subscriber: Text) -> ();
    SeekSubscriber = "seekSubscriber"
        SeekSubscriberArgs(1: queue_name: Text, 2: subscriber: Text, 3: position: String, 4: partitions: Vec<i16>) -> ();
    RedriveDeadLetters = "redriveDeadLetters"
        RedriveDeadLettersArgs(1: queue_name: Text, 2: subscriber: Text, 3: ids: Vec<TDeadLetterID>) -> TRedriven;
    DropDeadLetters = "dropDeadLetters"
        DropDeadLettersArgs(1: queue_name: Text, 2: subscriber: Text, 3: ids: Vec<TDeadLetterID>) -> i32;
    ExplainMessage = "explainMessage"
        ExplainMessageArgs(1: queue_name: Text, 2: partition: i16, 3: id: TMessageID, 4: subscriber: Text) -> TExplanation;
    ListSubscribers = "listSubscribers" ListSubscribersArgs(1: queue_name: Text) -> Vec<TSubscriptionStatus>;
    QueueStatus = "queueStatus" QueueStatusArgs(1: queue_name: Text) -> TQueueStatus;
    ClusterStatus = "clusterStatus" ClusterStatusArgs() -> TClusterStatus;
    MovePartition = "movePartition" MovePartitionArgs(1: queue_name: Text, 2: partition: i16, 3: broker: String) -> ();
    SwitchBalancer = "switchBalancer" SwitchBalancerArgs(1: on: bool) -> ();
    IsBalancerOn = "isBalancerOn" IsBalancerOnArgs() -> bool;
}

// HQueueBrokerService
methods! {
    AddDeadLetter = "addDeadLetter" AddDeadLetterArgs(1: queue_name: Text, 2: letter: TMessage) -> ();
    Redeliver = "redeliver"
        RedeliverArgs(1: queue_name: Text, 2: subscriber: Text, 3: partition: i16, 4: messages: Vec<TMessage>) -> i32;
    FindDeadLetters = "findDeadLetters"
        FindDeadLettersArgs(1: queue_name: Text, 2: partition: i16, 3: id: TMessageID) -> Vec<TKeptLetter>;
}
