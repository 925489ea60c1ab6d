package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.io.WritableUtils;

/**
 * Where a message stands in its queue, its topic and its headers. Ordered by partition and id, which name a message; topic and headers
 * do not count in comparisons.
 *
 * <p>Written as: partition (2 bytes), timestamp (8), sequence (2), all big-endian, as the row keys of a queue in HBase; then topic, headers.
 */
public class HQueueMessageKey implements WritableComparable<HQueueMessageKey> {
  /** Bytes of what is compared. */
  private static final int PLACE_BYTES = 12;

  private short partition;
  private long timestamp;
  private short sequence;
  private byte[] topic = new byte[0];
  private Map<String, byte[]> headers = Collections.emptyMap();

  public HQueueMessageKey() {}

  public HQueueMessageKey(int partition, long timestamp, int sequence, byte[] topic) {
    this.partition = (short) partition;
    this.timestamp = timestamp;
    this.sequence = (short) sequence;
    this.topic = topic.clone();
  }

  /** A copy, for those who keep it: the reader uses its key again for the next message. */
  public HQueueMessageKey(HQueueMessageKey other) {
    this(other.partition, other.timestamp, other.sequence, other.topic);
    headers = other.headers;
  }

  void set(int partition, TMessage message) {
    TMessageID id = message.getId();
    this.partition = (short) partition;
    timestamp = id.getTimestamp();
    sequence = id.getSequenceID();
    topic = message.getTopic();
    headers = Collections.emptyMap();
    if (message.isSetHeaders()) {
      headers = new TreeMap<>();
      message.getHeaders().forEach((name, value) -> headers.put(name, bytes(value)));
    }
  }

  /** The partition, from 0 on. */
  public int getPartition() {
    return partition;
  }

  /** The first part of the id: milliseconds since 1970 UTC. */
  public long getTimestamp() {
    return timestamp;
  }

  /** The second part of the id: counts within the millisecond. */
  public int getSequence() {
    return sequence;
  }

  /** As it is written everywhere: 1700000000000:12. */
  public String getId() {
    return Ids.text(timestamp, sequence);
  }

  /** The topic's bytes; not to be changed. */
  public byte[] getTopicBytes() {
    return topic;
  }

  /** The topic, if it is UTF-8. */
  public String getTopic() {
    return new String(topic, StandardCharsets.UTF_8);
  }

  /** Headers by name; mostly none. */
  public Map<String, byte[]> getHeaders() {
    return Collections.unmodifiableMap(headers);
  }

  @Override
  public void write(DataOutput out) throws IOException {
    out.writeShort(partition);
    out.writeLong(timestamp);
    out.writeShort(sequence);
    writeBytes(out, topic);
    WritableUtils.writeVInt(out, headers.size());
    for (Map.Entry<String, byte[]> header : headers.entrySet()) {
      writeBytes(out, header.getKey().getBytes(StandardCharsets.UTF_8));
      writeBytes(out, header.getValue());
    }
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    partition = in.readShort();
    timestamp = in.readLong();
    sequence = in.readShort();
    topic = readBytes(in);
    headers = Collections.emptyMap();
    int count = WritableUtils.readVInt(in);
    if (count > 0) {
      headers = new TreeMap<>();
    }
    for (int n = 0; n < count; n++) {
      String name = new String(readBytes(in), StandardCharsets.UTF_8);
      headers.put(name, readBytes(in));
    }
  }

  private static void writeBytes(DataOutput out, byte[] bytes) throws IOException {
    WritableUtils.writeVInt(out, bytes.length);
    out.write(bytes);
  }

  private static byte[] readBytes(DataInput in) throws IOException {
    byte[] bytes = new byte[WritableUtils.readVInt(in)];
    in.readFully(bytes);
    return bytes;
  }

  private static byte[] bytes(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  @Override
  public int compareTo(HQueueMessageKey other) {
    int byPartition = Short.compare(partition, other.partition);
    if (byPartition != 0) {
      return byPartition;
    }
    int byTime = Long.compare(timestamp, other.timestamp);
    return byTime != 0 ? byTime : Short.compare(sequence, other.sequence);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof HQueueMessageKey && compareTo((HQueueMessageKey) other) == 0;
  }

  @Override
  public int hashCode() {
    return (Long.hashCode(timestamp) * 31 + sequence) * 31 + partition;
  }

  /** {@code PARTITION ID TOPIC}. */
  @Override
  public String toString() {
    return partition + " " + getId() + " " + getTopic();
  }

  /** Compares the written form: none of the numbers is negative, so their bytes are in their order. */
  public static class Comparator extends WritableComparator {
    public Comparator() {
      super(HQueueMessageKey.class);
    }

    @Override
    public int compare(byte[] left, int leftAt, int leftLength, byte[] right, int rightAt, int rightLength) {
      return compareBytes(left, leftAt, PLACE_BYTES, right, rightAt, PLACE_BYTES);
    }
  }

  static {
    WritableComparator.define(HQueueMessageKey.class, new Comparator());
  }
}
