// The contract of the original HQueue, as far as a subscriber sees it.
struct TMessageID {
  1: i64 timestamp,
  2: i16 sequenceID
}

struct TMessage {
  1: optional TMessageID id,
  2: optional i16 partitionID,
  3: binary topic,
  4: binary value
}

service HQueueSubscriberService {
  i32 consumeMessages(1: list<TMessage> messages)
}
