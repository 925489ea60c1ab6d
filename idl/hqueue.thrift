/**
 * HQueue on the wire: every service, for every language.
 *
 * Fields 1 to 4 of TMessage, the service HQueueSubscriberService and the first nine methods of HQueueService are those of the
 * original HQueue and never change. What HQueue adds stands behind them as new optional fields and new methods: a
 * program that was generated from the original IDL goes on working.
 *
 * Transport: every port of a broker takes framed or buffered (unframed) Thrift in the binary or the compact protocol; it
 * finds out per connection and answers in kind. A request of more than 16 MiB is refused.
 *
 * Rust code is generated from this file by scripts/generate.
 */
namespace java com.etao.hadoop.hbase.queue.thrift.generated
namespace py hqueue
namespace rs hqueue
namespace go hqueue
namespace js hqueue
namespace cpp hqueue
namespace php HQueue

/** A queue's or a subscriber's name: [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}; a queue's has at most 124 characters and no ending .dlq */
typedef binary Text

/** Names an open scanner of one broker. It is closed when it was not used for 60 s. */
typedef i32 ScannerID

/** The position of a message in its partition, assigned by the partition's owner, strictly increasing. */
struct TMessageID {
  /** Milliseconds since 1970-01-01 UTC. */
  1: i64 timestamp,
  /** 0 to 32767, counts within the millisecond. */
  2: i16 sequenceID
}

struct TMessage {
  /** Filled in by the broker; what a client puts here is ignored. */
  1: optional TMessageID id,
  /** 0 to the queue's partitions - 1. */
  2: optional i16 partitionID,
  /** 1 to 255 bytes, any bytes. */
  3: binary topic,
  /** 0 bytes to the broker's max_message_bytes (4 MiB unless set). */
  4: binary value,
  /** For the applications; the broker keeps them as they came. */
  5: optional map<string, binary> headers
}

/** Which messages a scanner returns. */
struct TMessageScan {
  /** The first id wanted (inclusive); absent: from the oldest message. */
  1: optional TMessageID startID,
  /** The first id no longer wanted (exclusive); absent: up to the newest message. */
  2: optional TMessageID stopID,
  /** Only messages of these topics; absent or empty: all. */
  3: optional list<binary> topics
}

/** What HQueueError.code may be. New codes may come: treat an unknown one as FAILED. */
enum TErrorCode {
  /** The request itself is wrong: a name, a number, a size, a position. Repeating it will not help. */
  INVALID = 1,
  /** There is no such queue, subscriber, scanner or registration. */
  NOT_FOUND = 2,
  /** What was to be made exists. */
  EXISTS = 3,
  /** The queue is disabled, or has to be for this command. */
  WRONG_STATE = 4,
  /** A limit is reached: a size, a count. The message names it. */
  TOO_LARGE = 5,
  /** The partition cannot be served now: its owner is away. */
  OFFLINE = 6,
  /** No space on the broker's disk; a later try may succeed. */
  NO_SPACE = 7,
  /** The broker is stopping, or too much is waiting; a later try may succeed. */
  BUSY = 8,
  /** The broker could not do it; its log says more. */
  FAILED = 9
}

/** A refusal. Every method declares it. */
exception HQueueError {
  /** A TErrorCode. */
  1: i32 code,
  /** What, why, and which limit, for people. */
  2: string message
}

/**
 * Served by every subscriber, called by the broker.
 */
service HQueueSubscriberService {
  /**
   * Takes a batch of messages of one partition, in order. An empty list asks "are you there" and is answered with 0.
   *
   * Returns 0: all consumed. 1..n: the first so many are consumed, the next call starts behind them. -1: failed, nothing is
   * consumed, the call comes again later and counts as an attempt. -2: busy, nothing is consumed, not an attempt. -3: the first message is
   * refused for good. Anything else, and an exception, is taken as -1.
   */
  i32 consumeMessages(1: list<TMessage> messages)
}

/** Where messages of a put went. */
struct TPutResult {
  1: i16 partitionID,
  /** The ids in the order of the messages. */
  2: list<TMessageID> ids
}

/** A subscriber that announces itself, for subscribers without a ZooKeeper client. */
struct TRegistration {
  1: Text subscriber,
  /** host:port of the subscriber's HQueueSubscriberService, as the broker reaches it. */
  2: string address,
  /** Only messages of these topics; empty: all. */
  3: list<binary> topics,
  /** Only these partitions; empty: all. */
  4: list<i16> partitions,
  /**
   * Where a subscriber whose name is new begins: an id (1700000000000:12), epoch milliseconds, RFC 3339, -10m, earliest or latest.
   * Absent: latest. Without effect on a name that has a checkpoint.
   */
  5: optional string startPosition,
  /** Start positions of single partitions, over startPosition. */
  6: optional map<i16, string> partitionStartPositions,
  /** auto, buffered or framed. Absent: auto. */
  7: optional string transport,
  /** auto, binary or compact. Absent: auto. */
  8: optional string protocol
}

struct TRegistered {
  /** Names this registration in renew and unsubscribe. */
  1: i64 registrationID,
  /** The registration ends when it was not renewed for so long, in milliseconds. */
  2: i64 lifetimeMs
}

/**
 * The gateway, served by every broker. Any broker takes any call and forwards it to the owner of the partition.
 */
service HQueueService {
  /** Opens a scanner on one partition. */
  ScannerID messageScannerOpen(1: Text queueName, 2: i16 partitionID, 3: TMessageScan messageScan) throws (1: HQueueError error),
  /** The next message; at the end, a TMessage without an id. The scanner stays open: later messages may follow. */
  TMessage messageScannerGet(1: ScannerID id) throws (1: HQueueError error),
  /** Up to nbMessages (1 or more) messages and 8 MiB; an empty list at the end. */
  list<TMessage> messageScannerGetList(1: ScannerID id, 2: i32 nbMessages) throws (1: HQueueError error),
  /** Releases the scanner. */
  void messageScannerClose(1: ScannerID id) throws (1: HQueueError error),
  /** Puts into the message's own partition if it names one, else into a random one. Durable when it returns. */
  void putMessage(1: Text queueName, 2: TMessage tMessage) throws (1: HQueueError error),
  /** Puts all into one random partition, in order. */
  void putMessages(1: Text queueName, 2: list<TMessage> tMessages) throws (1: HQueueError error),
  /** Puts into this partition. */
  void putMessageWithPid(1: Text queueName, 2: i16 partitionID, 3: TMessage tMessage) throws (1: HQueueError error),
  /** Puts all into this partition, in order: all of them or none. */
  void putMessagesWithPid(1: Text queueName, 2: i16 partitionID, 3: list<TMessage> tMessages) throws (1: HQueueError error),
  /** host:port of the owner of each partition, in the order of the partitions. */
  list<Text> getQueueLocations(1: Text queueName) throws (1: HQueueError error),

  /** As putMessagesWithPid, and returns the ids; partition -1: a random one. */
  TPutResult putMessagesForIds(1: Text queueName, 2: i16 partitionID, 3: list<TMessage> tMessages) throws (1: HQueueError error),
  /** Announces an endpoint of a subscriber. To be renewed before its lifetime ends. */
  TRegistered subscribe(1: Text queueName, 2: TRegistration registration) throws (1: HQueueError error),
  /** Keeps a registration. NOT_FOUND: it has ended, subscribe again. */
  void renew(1: i64 registrationID) throws (1: HQueueError error),
  /** Ends a registration; the checkpoint stays. Returns when no call to its endpoint is in flight any more, or after 10 s. */
  void unsubscribe(1: i64 registrationID) throws (1: HQueueError error)
}

/** A queue to be made. */
struct TQueueSpec {
  1: Text name,
  /** 1 to 32767. */
  2: i32 partitions,
  /** Seconds, 1 or more: how long a message is kept. */
  3: i64 ttlSeconds,
  /** Keys of the original (those that begin with hbase. are kept and shown); others are refused. */
  4: map<string, string> configuration
}

struct TQueueDescription {
  1: Text name,
  2: i32 partitions,
  3: i64 ttlSeconds,
  /** enabled or disabled */
  4: string state,
  5: map<string, string> configuration,
  /** Milliseconds since 1970 UTC. */
  6: i64 createdMs,
  /** What was given at creation and has no effect on the store in use. */
  7: list<string> notices
}

/** A subscription to be made. Absent options have the defaults that `hqueue add_subscriber --help` shows. */
struct TSubscriberSpec {
  1: Text name,
  /** host:port of fixed endpoints; empty: it waits for one that registers. */
  2: list<string> addresses,
  3: list<binary> topics,
  4: list<i16> partitions,
  /** As in TRegistration. */
  5: optional string startPosition,
  /** Option names and values as on the command line, without the dashes: "call-timeout" -> "5s". */
  6: map<string, string> options
}

struct TCheckpoint {
  1: i16 partition,
  /** 1700000000000:12 */
  2: string id
}

struct TSubscriptionStatus {
  1: Text name,
  /** active, waiting (no endpoint), retrying, paused or broken. */
  2: string state,
  3: list<string> endpoints,
  4: list<binary> topics,
  /** Messages that it wants and has not finished. */
  5: i64 lagMessages,
  /** False: lagMessages is an upper bound. */
  6: bool lagExact,
  /** Age of the oldest message that it wants and has not finished. */
  7: double lagSeconds,
  8: i64 inFlight,
  /** How often the oldest unfinished batch was tried. */
  9: i32 attempts,
  10: i64 delivered,
  11: i64 failed,
  12: i64 expiredMessages,
  13: i64 deadLettered,
  14: optional string lastError,
  /** RFC 3339. */
  15: optional string lastErrorTime,
  16: list<TCheckpoint> checkpoints
}

struct TPartitionStatus {
  1: i16 partition,
  2: string owner,
  /** online or offline */
  3: string state,
  4: optional string firstID,
  5: optional string lastID,
  6: i64 messages,
  7: i64 bytes
}

struct TQueueStatus {
  1: Text name,
  2: string state,
  3: list<TPartitionStatus> partitions,
  4: list<TSubscriptionStatus> subscriptions
}

struct TBrokerStatus {
  1: string name,
  2: string address,
  3: string state
}

struct TQueueSummary {
  1: Text name,
  2: i32 partitions,
  3: i32 offline,
  4: i32 subscriptions,
  5: i64 lagMessages
}

struct TClusterStatus {
  1: list<TBrokerStatus> brokers,
  2: list<TQueueSummary> queues
}

/**
 * Administration, on the same port as the gateway.
 */
service HQueueAdminService {
  /** Returns when every partition has an owner; the list says which parts of the configuration have no effect here. */
  list<string> createQueue(1: TQueueSpec spec) throws (1: HQueueError error),
  list<TQueueDescription> listQueues() throws (1: HQueueError error),
  TQueueDescription describeQueue(1: Text queueName) throws (1: HQueueError error),
  /** Refuses puts and holds pushes; scans go on. */
  void disableQueue(1: Text queueName) throws (1: HQueueError error),
  void enableQueue(1: Text queueName) throws (1: HQueueError error),
  /** Removes a disabled queue with its messages and subscribers. */
  void dropQueue(1: Text queueName) throws (1: HQueueError error),
  /** Removes all messages; subscribers stay, ids go on rising. */
  void truncateQueue(1: Text queueName) throws (1: HQueueError error),
  void addSubscriber(1: Text queueName, 2: TSubscriberSpec spec) throws (1: HQueueError error),
  /** Removes a subscriber with its checkpoints. */
  void deleteSubscriber(1: Text queueName, 2: Text subscriber) throws (1: HQueueError error),
  list<TSubscriptionStatus> listSubscribers(1: Text queueName) throws (1: HQueueError error),
  TQueueStatus queueStatus(1: Text queueName) throws (1: HQueueError error),
  TClusterStatus clusterStatus() throws (1: HQueueError error)
}
