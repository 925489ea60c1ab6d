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
 * Brokers call each other by the same methods, with "owner:" before the name: the one that is called does its own part and asks nobody else.
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
namespace rb HQueue
namespace perl HQueue

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

/** What a pull consumer asks for. */
struct TFetch {
  /**
   * Where to begin: an id (inclusive), epoch milliseconds, RFC 3339, -10m, earliest or latest. Absent: behind what the subscriber has
   * committed.
   */
  1: optional string position,
  /** The subscriber whose checkpoint and topics count; absent: none, then a position has to be given. */
  2: optional Text subscriber,
  /** Most messages, 1 to 100000. */
  3: i32 maxMessages,
  /** How long to wait for the first message if there is none, in milliseconds, 0 to 30000. */
  4: i64 waitMs,
  /** Only messages of these topics; absent or empty: those of the subscriber, or all. */
  5: optional list<binary> topics
}

struct TFetched {
  /** In order. Empty: nothing came in time. At most 8 MiB, unless a single message is larger. */
  1: list<TMessage> messages,
  /** Where the next fetch begins; what to commit when all of these are done. */
  2: TMessageID nextID
}

/** What a scanner has passed over since it was opened, because it cannot be returned any more. Of all topics, up to where the broker has read ahead. */
struct TScanReport {
  /** Messages that have expired, or made room for newer ones. */
  1: i64 expired,
  /** Messages whose bytes on the broker's disk are damaged. */
  2: i64 damaged
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
  /**
   * host:port of who has the messages of each partition, in the order of the partitions: of the region server where they are in HBase, else as
   * getQueueLocations. Batch jobs are best run there.
   */
  list<Text> getDataLocations(1: Text queueName) throws (1: HQueueError error),

  /** As putMessagesWithPid, and returns the ids; partition -1: a random one. */
  TPutResult putMessagesForIds(1: Text queueName, 2: i16 partitionID, 3: list<TMessage> tMessages) throws (1: HQueueError error),
  /** Announces an endpoint of a subscriber. To be renewed before its lifetime ends. */
  TRegistered subscribe(1: Text queueName, 2: TRegistration registration) throws (1: HQueueError error),
  /** Keeps a registration. NOT_FOUND: it has ended, subscribe again. */
  void renew(1: i64 registrationID) throws (1: HQueueError error),
  /**
   * For a consumer that sets the pace: messages of a partition from a position on, waiting for the first one if there is none. The subscriber is
   * made beforehand with addSubscriber, without an address.
   */
  TFetched fetch(1: Text queueName, 2: i16 partitionID, 3: TFetch what) throws (1: HQueueError error),
  /** Everything below `nextID` is done. Never moves back: for that there is seekSubscriber. Durable when it returns. */
  void commit(1: Text queueName, 2: Text subscriber, 3: i16 partitionID, 4: TMessageID nextID) throws (1: HQueueError error),
  /** Ends a registration; the checkpoint stays. Returns when no call to its endpoint is in flight any more, or after 10 s. */
  void unsubscribe(1: i64 registrationID) throws (1: HQueueError error),
  /** What the scanner has passed over. For those who have to know that they read everything: ask behind the list, on the same connection. */
  TScanReport messageScannerReport(1: ScannerID id) throws (1: HQueueError error)
}

/** A queue to be made. */
struct TQueueSpec {
  1: Text name,
  /** 1 to 32767. */
  2: i32 partitions,
  /** Seconds, 1 or more: how long a message is kept. */
  3: i64 ttlSeconds,
  /** Keys of the original (those that begin with hbase. are kept and shown); others are refused. */
  4: map<string, string> configuration,
  /** Bytes of messages that are kept at most, over all partitions; absent: as many as fit on the disk. */
  5: optional i64 maxBytes,
  /** What happens when that is reached: reject (puts are refused, the default) or drop_oldest. */
  6: optional string whenFull,
  /** With drop_oldest: what a subscription has not consumed is not dropped before its time; puts are refused instead. Absent: false. */
  7: optional bool keepUnread
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
  7: list<string> notices,
  /** As in TQueueSpec. */
  8: optional i64 maxBytes,
  9: optional string whenFull,
  10: optional bool keepUnread,
  /** What the store has of it, where that is HBase: table, regions, TTL, compression, attributes. Only in the answer of describeQueue. */
  11: optional map<string, string> stored
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

/** A message that a subscriber could not consume, by where it was in its queue. */
struct TDeadLetterID {
  1: i16 partition,
  2: TMessageID id
}

struct TRedriven {
  /** Accepted by the subscriber, and removed from the dead letters. */
  1: i32 accepted,
  /** There are more to be redriven: call again. */
  2: bool more,
  /** Why it stopped before the end; what was not accepted is still there. */
  3: optional string error
}

/** A call that carried a message, or was to. */
struct TCallDetails {
  /** When it ended, RFC 3339. */
  1: string time,
  /** host:port */
  2: string endpoint,
  /** Which attempt of its batch it was; one that did not count has the number of those before it. */
  3: i32 attempt,
  /** What came of it for this message, for people. */
  4: string result
}

/** Where a message stands with one subscription. */
struct TMessageStanding {
  1: Text subscriber,
  /**
   * delivered, in_flight, waiting, filtered (its topic is not wanted), dead_lettered, redriven (a dead letter that was accepted later), letter_gone (it
   * was dead-lettered, and the letter is not there any more), passed_over (by a seek), below_checkpoint (finished; how is not known any more),
   * before_start (of the subscription), not_read (the subscription does not read the partition); or expired, truncated, dropped, damaged: before it
   * could be delivered. More may come.
   */
  2: string state,
  /**
   * Why it waits: disabled, paused, broken, changing, dead_letter_queue, blocked, no_endpoint, endpoint_away, failing, retrying, busy, rate_limit,
   * call, span, window, messages (that lie before it) or next. More may come. Absent: it does not wait.
   */
  3: optional string reason,
  /** All of that in a sentence, for people. */
  4: string text,
  /** When it came to be so: the end of the call, the beginning of one under way. RFC 3339. */
  5: optional string time,
  /** Of that call, or the one that is waited for. */
  6: optional string endpoint,
  /** How often it was tried, with the call that is under way. */
  7: optional i32 attempts,
  /** What went wrong last. */
  8: optional string lastError,
  /** The oldest message that it waits behind. */
  9: optional TMessageID behind,
  /** So many messages that the subscription wants lie before it; an upper bound where topics are many. */
  10: optional i64 ahead,
  /** When it is tried again at the latest, unless something changes: milliseconds from now. */
  11: optional i64 waitMs,
  /** Its dead letter in <queue>.dlq. */
  12: optional TMessageID letterID,
  /** The last calls that carried it, oldest first, as far as the broker still has them in memory; at most 20. */
  13: list<TCallDetails> calls
}

/** What became of a message. */
struct TExplanation {
  1: Text queueName,
  2: i16 partition,
  3: TMessageID id,
  /**
   * stored; never (there is none and was none); expired, truncated, dropped (to make room), damaged; gone (one of these, or never). More may
   * come.
   */
  4: string state,
  /** The same in a sentence, for people. */
  5: string text,
  /** Absent: the message is not there. */
  6: optional binary topic,
  /** In the order of their names. */
  7: list<TMessageStanding> subscriptions
}

struct TCheckpoint {
  1: i16 partition,
  /** 1700000000000:12 */
  2: string id
}

struct TSubscriptionStatus {
  1: Text name,
  /** active, waiting (no endpoint), retrying, failing (fails at everything), blocked (by a message), paused or broken. */
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
  /** online or offline */
  3: string state,
  /** Of its session with ZooKeeper, as ZooKeeper's own tools show it; absent without ZooKeeper. */
  4: optional string session,
  /** Partitions that it was given, of all queues. */
  5: optional i32 partitions,
  /** It gives partitions to brokers. */
  6: optional bool balancer
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
  2: list<TQueueSummary> queues,
  /** What is wrong with coordination, as the broker that was asked sees it; absent: nothing. */
  3: optional string trouble
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
  /**
   * Changes options of a subscriber while it is served; those that are not named keep their values. All are checked before anything is written.
   * Calls under way end by the old ones; the next one goes by the new ones.
   */
  void setSubscriber(1: Text queueName, 2: Text subscriber, 3: map<string, string> options) throws (1: HQueueError error),
  /** No more calls until it is resumed; those under way end. */
  void pauseSubscriber(1: Text queueName, 2: Text subscriber) throws (1: HQueueError error),
  /** Ends a pause, and has a message that blocks tried again from 0 attempts. */
  void resumeSubscriber(1: Text queueName, 2: Text subscriber) throws (1: HQueueError error),
  /** Moves checkpoints, forward or back: the next message is the first at or behind the position. No partitions: all. */
  void seekSubscriber(1: Text queueName, 2: Text subscriber, 3: string position, 4: list<i16> partitions) throws (1: HQueueError error),
  /**
   * Pushes dead letters to their subscriber again, in the order in which they failed, and removes those that it accepts. No ids: all. Returns
   * after some seconds at the latest; to be repeated while there are more.
   */
  TRedriven redriveDeadLetters(1: Text queueName, 2: Text subscriber, 3: list<TDeadLetterID> ids) throws (1: HQueueError error),
  /** Removes dead letters; returns how many. No ids: all of the subscriber. */
  i32 dropDeadLetters(1: Text queueName, 2: Text subscriber, 3: list<TDeadLetterID> ids) throws (1: HQueueError error),
  /**
   * Tells what became of one message, for each subscription or for one; an empty name: each. The owner of the partition answers. Details are known of
   * the last 10,000 calls of that broker since it was started.
   */
  TExplanation explainMessage(1: Text queueName, 2: i16 partitionID, 3: TMessageID id, 4: Text subscriber) throws (1: HQueueError error),
  list<TSubscriptionStatus> listSubscribers(1: Text queueName) throws (1: HQueueError error),
  TQueueStatus queueStatus(1: Text queueName) throws (1: HQueueError error),
  TClusterStatus clusterStatus() throws (1: HQueueError error),
  /** Gives a partition to a broker (its name, or host:port). Returns when that one owns it. Refused where messages are in the brokers' logs. */
  void movePartition(1: Text queueName, 2: i16 partitionID, 3: string broker) throws (1: HQueueError error),
  /** Off, the balancer gives away new queues and what gone brokers had, and moves nothing else. */
  void switchBalancer(1: bool on) throws (1: HQueueError error),
  bool isBalancerOn() throws (1: HQueueError error)
}

/** A dead letter that is there. */
struct TKeptLetter {
  1: Text subscriber,
  /** In the dead-letter queue. */
  2: TMessageID id,
  3: i32 attempts,
  /** Why it could not be consumed. */
  4: string error
}

/**
 * What brokers ask of each other beside their own parts of the calls above. On the same port.
 */
service HQueueBrokerService {
  /** Keeps a dead letter; one that is there already (same subscriber, partition and id) is not kept twice. Durable when it returns. */
  void addDeadLetter(1: Text queueName, 2: TMessage letter) throws (1: HQueueError error),
  /** Pushes messages of a partition to a subscriber outside of the order; returns how many it accepted, from the first one on. */
  i32 redeliver(1: Text queueName, 2: Text subscriber, 3: i16 partitionID, 4: list<TMessage> messages) throws (1: HQueueError error),
  /** The dead letters that a dead-letter queue has of one message of its queue, by whichever subscriber. */
  list<TKeptLetter> findDeadLetters(1: Text queueName, 2: i16 partitionID, 3: TMessageID id) throws (1: HQueueError error)
}
