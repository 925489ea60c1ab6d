package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.HQueueError;
import com.etao.hadoop.hbase.queue.thrift.generated.HQueueService;
import com.etao.hadoop.hbase.queue.thrift.generated.TErrorCode;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BinaryComparable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.thrift.TException;

/** Puts in batches, each of which is acknowledged before the next one is put. */
public class HQueueRecordWriter extends RecordWriter<Writable, Writable> {
  /** A random one, chosen by the broker. */
  private static final short ANY_PARTITION = -1;
  /** So many batches' bytes wait at most, over all partitions. */
  private static final int WAITING_BATCHES = 16;

  private final TaskAttemptContext context;
  private final String queue;
  private final ByteBuffer queueName;
  private final String usualTopic;
  private final boolean keepsPartition;
  private final int batchMessages;
  private final int batchBytes;
  private final Brokers brokers;
  private final Map<Short, Batch> batches = new HashMap<>();
  private long waitingBytes;

  private static final class Batch {
    final List<TMessage> messages = new ArrayList<>();
    long bytes;
  }

  /** Refuses settings that cannot be. */
  static void check(Configuration conf) throws HQueueRefusedException {
    HQueueConfiguration.oneOf(conf, HQueueConfiguration.OUTPUT_PARTITION, "random", "same");
    HQueueConfiguration.number(conf, HQueueConfiguration.OUTPUT_BATCH, 1000, 100_000);
    HQueueConfiguration.number(conf, HQueueConfiguration.OUTPUT_BATCH_BYTES, 1 << 20, HQueueConfiguration.MAX_BATCH_BYTES);
  }

  HQueueRecordWriter(TaskAttemptContext context) throws IOException {
    Configuration conf = context.getConfiguration();
    this.context = context;
    queue = HQueueConfiguration.required(conf, HQueueConfiguration.OUTPUT_QUEUE);
    queueName = ByteBuffer.wrap(queue.getBytes(StandardCharsets.UTF_8));
    usualTopic = conf.get(HQueueConfiguration.OUTPUT_TOPIC, "");
    keepsPartition = HQueueConfiguration.oneOf(conf, HQueueConfiguration.OUTPUT_PARTITION, "random", "same").equals("same");
    batchMessages = HQueueConfiguration.number(conf, HQueueConfiguration.OUTPUT_BATCH, 1000, 100_000);
    batchBytes =
        HQueueConfiguration.number(conf, HQueueConfiguration.OUTPUT_BATCH_BYTES, 1 << 20, HQueueConfiguration.MAX_BATCH_BYTES);
    brokers = new Brokers(conf, "", context);
  }

  @Override
  public void write(Writable key, Writable value) throws IOException, InterruptedException {
    TMessage message = new TMessage(ByteBuffer.wrap(topic(key)), ByteBuffer.wrap(bytes("value", value)));
    short partition = ANY_PARTITION;
    if (key instanceof HQueueMessageKey) {
      ((HQueueMessageKey) key).getHeaders().forEach((name, header) -> message.putToHeaders(name, ByteBuffer.wrap(header)));
      partition = keepsPartition ? (short) ((HQueueMessageKey) key).getPartition() : ANY_PARTITION;
    } else if (keepsPartition) {
      throw new HQueueRefusedException(HQueueConfiguration.OUTPUT_PARTITION + " is same: the key has to be an HQueueMessageKey, it is a "
          + key.getClass().getName());
    }
    int length = message.value.remaining() + message.topic.remaining();
    Batch batch = batches.computeIfAbsent(partition, none -> new Batch());
    if (!batch.messages.isEmpty() && (batch.messages.size() >= batchMessages || batch.bytes + length > batchBytes)) {
      put(partition, batch);
    }
    batch.messages.add(message);
    batch.bytes += length;
    waitingBytes += length;
    if (waitingBytes > (long) WAITING_BATCHES * batchBytes) {
      putAll();
    }
  }

  private byte[] topic(Writable key) throws HQueueRefusedException {
    if (key instanceof HQueueMessageKey) {
      return ((HQueueMessageKey) key).getTopicBytes();
    }
    if (key != null && !(key instanceof NullWritable)) {
      return bytes("key (the topic)", key);
    }
    if (usualTopic.isEmpty()) {
      throw new HQueueRefusedException("the key is a NullWritable, and " + HQueueConfiguration.OUTPUT_TOPIC + " is not set");
    }
    return usualTopic.getBytes(StandardCharsets.UTF_8);
  }

  /** A copy: the caller uses its objects again. */
  private static byte[] bytes(String what, Writable from) throws HQueueRefusedException {
    if (from instanceof BinaryComparable) {
      BinaryComparable bytes = (BinaryComparable) from;
      return Arrays.copyOf(bytes.getBytes(), bytes.getLength());
    }
    throw new HQueueRefusedException("the " + what + " has to be a Text or a BytesWritable, it is a " + from.getClass().getName());
  }

  private void put(short partition, Batch batch) throws IOException, InterruptedException {
    int count = batch.messages.size();
    if (count > 0) {
      Put put = new Put(partition, batch.messages);
      brokers.call("putting " + count + " messages into queue " + queue, put);
      context.getCounter(HQueueCounter.MESSAGES_PUT).increment(count);
      context.getCounter(HQueueCounter.BYTES_PUT).increment(batch.messages.stream().mapToLong(m -> m.value.remaining()).sum());
    }
    waitingBytes -= batch.bytes;
    batch.messages.clear();
    batch.bytes = 0;
  }

  private void putAll() throws IOException, InterruptedException {
    for (Map.Entry<Short, Batch> batch : batches.entrySet()) {
      put(batch.getKey(), batch.getValue());
    }
  }

  /** A put, again if it fails. */
  private final class Put implements Brokers.Call<Void> {
    private final short partition;
    private final List<TMessage> messages;
    /** An earlier try may have put them: no answer came. */
    private boolean isDoubtful;

    Put(short partition, List<TMessage> messages) {
      this.partition = partition;
      this.messages = messages;
    }

    @Override
    public Void on(Brokers brokers) throws TException {
      if (isDoubtful) {
        context.getCounter(HQueueCounter.MESSAGES_PUT_AGAIN).increment(messages.size());
      }
      isDoubtful = true;
      HQueueService.Client gateway = brokers.gateway();
      try {
        if (partition == ANY_PARTITION) {
          gateway.putMessages(queueName, messages);
        } else {
          gateway.putMessagesWithPid(queueName, partition, messages);
        }
      } catch (HQueueError refused) {
        isDoubtful = refused.getCode() == TErrorCode.FAILED.getValue();
        throw refused;
      }
      return null;
    }
  }

  @Override
  public void close(TaskAttemptContext context) throws IOException, InterruptedException {
    try {
      putAll();
    } finally {
      brokers.close();
    }
  }
}
