package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.HQueueError;
import com.etao.hadoop.hbase.queue.thrift.generated.TClusterStatus;
import com.etao.hadoop.hbase.queue.thrift.generated.TErrorCode;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import com.etao.hadoop.hbase.queue.thrift.generated.TPartitionStatus;
import com.etao.hadoop.hbase.queue.thrift.generated.TQueueStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.thrift.TException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The messages of a queue, one split for each partition. A split's end is fixed when the splits are made, so a job ends although messages
 * go on coming.
 */
public class HQueueInputFormat extends InputFormat<HQueueMessageKey, BytesWritable> {
  private static final Logger LOG = LoggerFactory.getLogger(HQueueInputFormat.class);

  /** Reads all of this queue, by these brokers (host:port, separated by commas). */
  public static void setQueue(Configuration conf, String brokers, String queue) {
    conf.set(HQueueConfiguration.CONNECT, brokers);
    conf.set(HQueueConfiguration.INPUT_QUEUE, queue);
  }

  /** Only messages from a position on (inclusive) and up to another (exclusive): an id, milliseconds, RFC 3339, -10m, earliest, latest. */
  public static void setRange(Configuration conf, String start, String stop) {
    conf.set(HQueueConfiguration.INPUT_START, start);
    conf.set(HQueueConfiguration.INPUT_STOP, stop);
  }

  /** Only messages of these topics. */
  public static void setTopics(Configuration conf, String... topics) {
    conf.set(HQueueConfiguration.INPUT_TOPICS, HQueueConfiguration.encodeTopics(topics));
  }

  @Override
  public List<InputSplit> getSplits(JobContext context) throws IOException, InterruptedException {
    Configuration conf = context.getConfiguration();
    String queue = HQueueConfiguration.required(conf, HQueueConfiguration.INPUT_QUEUE);
    Range range = new Range(conf, System.currentTimeMillis());
    // Settings that only the tasks use: better refused here than there.
    HQueueRecordReader.check(conf);
    try (Brokers brokers = new Brokers(conf, "", () -> { })) {
      String what = "splits of queue " + queue;
      ByteBuffer name = ByteBuffer.wrap(queue.getBytes(StandardCharsets.UTF_8));
      TQueueStatus status = brokers.call(what, b -> allOnline(queue, b.admin().queueStatus(name)));
      List<String> locations = brokers.call(what, b -> allServed(queue, b.gateway().getDataLocations(name)));
      Set<String> known = brokers.call(what, b -> addresses(b.admin().clusterStatus()));
      List<InputSplit> splits = new ArrayList<>();
      for (TPartitionStatus partition : status.getPartitions()) {
        splits.add(range.split(queue, partition, Location.of(locations.get(partition.getPartition()), known)));
      }
      LOG.info("{}: {}", what, splits);
      return splits;
    }
  }

  /** A partition that is away would be missing in the result. */
  private static TQueueStatus allOnline(String queue, TQueueStatus status) throws TException {
    for (TPartitionStatus partition : status.getPartitions()) {
      if (!"online".equals(partition.getState())) {
        throw offline(queue, partition.getPartition());
      }
    }
    return status;
  }

  private static List<String> allServed(String queue, List<ByteBuffer> locations) throws TException {
    List<String> addresses = new ArrayList<>();
    for (ByteBuffer location : locations) {
      String address = StandardCharsets.UTF_8.decode(location).toString();
      if (address.isEmpty()) {
        throw offline(queue, addresses.size());
      }
      addresses.add(address);
    }
    return addresses;
  }

  private static Set<String> addresses(TClusterStatus status) {
    Set<String> addresses = new LinkedHashSet<>();
    status.getBrokers().forEach(broker -> addresses.add(broker.getAddress()));
    return addresses;
  }

  private static HQueueError offline(String queue, int partition) {
    String message = "partition " + partition + " of queue " + queue + " is offline: a job would miss its messages";
    return new HQueueError(TErrorCode.OFFLINE.getValue(), message);
  }

  @Override
  public RecordReader<HQueueMessageKey, BytesWritable> createRecordReader(InputSplit split, TaskAttemptContext context) {
    return new HQueueRecordReader();
  }

  /** What is wanted of each partition. */
  private static final class Range {
    private final String start;
    private final String stop;
    private final long nowMs;

    Range(Configuration conf, long nowMs) throws HQueueRefusedException {
      start = conf.getTrimmed(HQueueConfiguration.INPUT_START, "earliest");
      stop = conf.getTrimmed(HQueueConfiguration.INPUT_STOP, "latest");
      this.nowMs = nowMs;
      TMessageID from = start(null);
      TMessageID to = stop(null);
      if (!start.equals("latest") && !stop.equals("latest") && Ids.ORDER.compare(from, to) >= 0) {
        throw new HQueueRefusedException(HQueueConfiguration.INPUT_START + " (" + start + ") is not below "
            + HQueueConfiguration.INPUT_STOP + " (" + stop + "): there is nothing between them");
      }
    }

    private TMessageID start(TMessageID last) throws HQueueRefusedException {
      return Positions.resolve(HQueueConfiguration.INPUT_START, start, nowMs, last);
    }

    private TMessageID stop(TMessageID last) throws HQueueRefusedException {
      return Positions.resolve(HQueueConfiguration.INPUT_STOP, stop, nowMs, last);
    }

    HQueueInputSplit split(String queue, TPartitionStatus partition, Location at) throws HQueueRefusedException {
      int number = partition.getPartition();
      if (!partition.isSetLastID()) {
        return new HQueueInputSplit(number, at, Ids.FIRST, Ids.FIRST, null, 0);
      }
      TMessageID first = Ids.parse(partition.getFirstID());
      TMessageID last = Ids.parse(partition.getLastID());
      TMessageID end = Ids.successor(last);
      TMessageID from = start(last);
      TMessageID to = Ids.smaller(stop(last), end);
      if (from.equals(Ids.FIRST)) {
        // What expired before the job began is nothing that the job misses.
        from = first;
      } else if (Ids.ORDER.compare(from, first) < 0) {
        LOG.warn("queue {} partition {}: the range begins at {}, the oldest message is {}: what has expired is counted by the task",
            queue, number, Ids.text(from), Ids.text(first));
      }
      boolean isEmpty = Ids.ORDER.compare(from, to) >= 0;
      return new HQueueInputSplit(number, at, from, to, to.equals(end) ? last : null, isEmpty ? 0 : partition.getBytes());
    }
  }
}
