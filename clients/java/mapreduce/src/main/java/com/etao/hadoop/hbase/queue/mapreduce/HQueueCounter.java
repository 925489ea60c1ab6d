package com.etao.hadoop.hbase.queue.mapreduce;

/** What tasks count. Shown as the group "HQueue". */
public enum HQueueCounter {
  /** Messages that were read. */
  MESSAGES_READ,
  /** Bytes of their values. */
  BYTES_READ,
  /** Messages of the range, of any topic, that had expired (or had made room for newer ones) before they were read. */
  EXPIRED_MESSAGES,
  /** Messages of the range, of any topic, whose bytes on the broker's disk are damaged. */
  DAMAGED_MESSAGES,
  /** How often a scanner was opened anew, behind the last message, because its broker or the connection had gone. */
  REOPENED_SCANNERS,
  /** Messages that were put and acknowledged. */
  MESSAGES_PUT,
  /** Bytes of their values. */
  BYTES_PUT,
  /** Messages of batches that were put again because no answer came: some of them may be in the queue twice. */
  MESSAGES_PUT_AGAIN
}
