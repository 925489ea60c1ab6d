package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.HQueueError;
import com.etao.hadoop.hbase.queue.thrift.generated.HQueueService;
import com.etao.hadoop.hbase.queue.thrift.generated.TErrorCode;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageScan;
import com.etao.hadoop.hbase.queue.thrift.generated.TScanReport;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.thrift.TException;
import org.apache.thrift.transport.TTransportException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads one partition by a scanner of its broker. When the broker goes away, the scanner is opened anew behind the last message that came, at
 * another address. The key and the value are the same objects each time.
 */
public class HQueueRecordReader extends RecordReader<HQueueMessageKey, BytesWritable> {
  private static final Logger LOG = LoggerFactory.getLogger(HQueueRecordReader.class);

  private final HQueueMessageKey key = new HQueueMessageKey();
  private final BytesWritable value = new BytesWritable();

  private TaskAttemptContext context;
  private HQueueInputSplit split;
  private String queue;
  private ByteBuffer queueName;
  private List<ByteBuffer> topics;
  private int batch;
  private boolean failsOnMissing;
  private Brokers brokers;

  /** The scanner, while it is open. */
  private Integer scanner;
  /** The next batch has been asked for. */
  private boolean isAsked;
  private boolean wasOpened;
  /** What the open scanner has reported so far. */
  private TScanReport reported = new TScanReport(0, 0);
  /** What all scanners have reported. */
  private long missing;

  private Iterator<TMessage> messages = Collections.emptyIterator();
  /** The last message that came. */
  private TMessageID last;
  private boolean isAtEnd;

  /** Refuses settings that cannot be. */
  static void check(Configuration conf) throws HQueueRefusedException {
    HQueueConfiguration.topics(conf);
    HQueueConfiguration.number(conf, HQueueConfiguration.INPUT_BATCH, 1000, 1_000_000);
    HQueueConfiguration.oneOf(conf, HQueueConfiguration.INPUT_ON_MISSING, "count", "fail");
  }

  @Override
  public void initialize(InputSplit split, TaskAttemptContext context) throws IOException {
    Configuration conf = context.getConfiguration();
    this.context = context;
    this.split = (HQueueInputSplit) split;
    queue = HQueueConfiguration.required(conf, HQueueConfiguration.INPUT_QUEUE);
    queueName = ByteBuffer.wrap(queue.getBytes(StandardCharsets.UTF_8));
    topics = HQueueConfiguration.topics(conf);
    batch = HQueueConfiguration.number(conf, HQueueConfiguration.INPUT_BATCH, 1000, 1_000_000);
    failsOnMissing = HQueueConfiguration.oneOf(conf, HQueueConfiguration.INPUT_ON_MISSING, "count", "fail").equals("fail");
    brokers = new Brokers(conf, this.split.getBroker(), context);
    isAtEnd = this.split.isEmpty();
  }

  @Override
  public boolean nextKeyValue() throws IOException, InterruptedException {
    while (!messages.hasNext()) {
      if (isAtEnd) {
        return false;
      }
      readBatch();
    }
    TMessage message = messages.next();
    key.set(split.getPartition(), message);
    ByteBuffer bytes = message.value;
    value.set(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
    return true;
  }

  private void readBatch() throws IOException, InterruptedException {
    TMessageID before = last;
    Batch came = brokers.call(where(), this::exchange);
    note(came.report, before);
    if (came.messages.isEmpty()) {
      checkEnd();
      isAtEnd = true;
      return;
    }
    long bytes = 0;
    for (TMessage message : came.messages) {
      bytes += message.value.remaining();
    }
    last = came.messages.get(came.messages.size() - 1).getId();
    context.getCounter(HQueueCounter.MESSAGES_READ).increment(came.messages.size());
    context.getCounter(HQueueCounter.BYTES_READ).increment(bytes);
    messages = came.messages.iterator();
  }

  private String where() {
    return "reading queue " + queue + " partition " + split.getPartition();
  }

  private static final class Batch {
    final List<TMessage> messages;
    final TScanReport report;

    Batch(List<TMessage> messages, TScanReport report) {
      this.messages = messages;
      this.report = report;
    }
  }

  /** Gets the next batch and what was passed over on the way to it, and asks for the one behind it, so that the broker works meanwhile. */
  private Batch exchange(Brokers brokers) throws TException {
    HQueueService.Client gateway = brokers.gateway();
    if (scanner == null) {
      open(gateway);
    }
    try {
      if (!isAsked) {
        ask(brokers);
      }
      isAsked = false;
      Batch came = new Batch(gateway.recv_messageScannerGetList(), brokers.beside().recv_messageScannerReport());
      if (!came.messages.isEmpty()) {
        askAhead(brokers);
      }
      return came;
    } catch (TException error) {
      // The connection goes with it, and so does what it still owes.
      scanner = null;
      isAsked = false;
      throw isScannerGone(error) ? new TTransportException(error.getMessage()) : error;
    }
  }

  /** A scanner that was not used for 60 s is closed; so are all when the broker ends. It is opened anew. */
  private static boolean isScannerGone(TException error) {
    return error instanceof HQueueError && ((HQueueError) error).getCode() == TErrorCode.NOT_FOUND.getValue();
  }

  private void open(HQueueService.Client gateway) throws TException {
    TMessageScan scan = new TMessageScan()
        .setStartID(last == null ? split.start() : Ids.successor(last)).setStopID(split.stop()).setTopics(topics);
    scanner = gateway.messageScannerOpen(queueName, (short) split.getPartition(), scan);
    reported = new TScanReport(0, 0);
    if (wasOpened) {
      context.getCounter(HQueueCounter.REOPENED_SCANNERS).increment(1);
      LOG.info("{}: goes on behind {}", where(), last == null ? "the start" : Ids.text(last));
    }
    wasOpened = true;
  }

  private void ask(Brokers brokers) throws TException {
    brokers.gateway().send_messageScannerGetList(scanner, batch);
    brokers.beside().send_messageScannerReport(scanner);
  }

  private void askAhead(Brokers brokers) {
    try {
      ask(brokers);
      isAsked = true;
    } catch (TException error) {
      LOG.debug("{}: {}: the next batch is asked for again", where(), error.getMessage());
    }
  }

  /** Counts and reports what was passed over since the last batch. */
  private void note(TScanReport report, TMessageID before) throws IOException {
    long expired = report.getExpired() - reported.getExpired();
    long damaged = report.getDamaged() - reported.getDamaged();
    reported = report;
    if (expired + damaged == 0) {
      return;
    }
    missing += expired + damaged;
    context.getCounter(HQueueCounter.EXPIRED_MESSAGES).increment(expired);
    context.getCounter(HQueueCounter.DAMAGED_MESSAGES).increment(damaged);
    String what = where() + ": behind " + (before == null ? "the start, " + split.getStart() : Ids.text(before)) + ", " + expired
        + " messages have expired before they were read and " + damaged + " are damaged on the broker's disk";
    LOG.warn(what);
    context.setStatus(what);
    if (failsOnMissing) {
      throw new HQueueRefusedException(what + " (" + HQueueConfiguration.INPUT_ON_MISSING + " is fail)");
    }
  }

  /** The range's last message was there when the splits were made: it was read, or it is known why not. */
  private void checkEnd() throws IOException {
    boolean isLastThere = last != null && split.last() != null && Ids.ORDER.compare(last, split.last()) >= 0;
    if (split.last() != null && !isLastThere && missing == 0 && topics.isEmpty()) {
      throw new HQueueRefusedException(where() + ": its messages up to " + Ids.text(split.last()) + " were there when the splits were made,"
          + " now they end at " + (last == null ? "the start" : Ids.text(last))
          + ", and none is said to have expired or to be damaged: was the queue truncated, or made anew?");
    }
  }

  @Override
  public HQueueMessageKey getCurrentKey() {
    return key;
  }

  @Override
  public BytesWritable getCurrentValue() {
    return value;
  }

  /** By the time of the messages. */
  @Override
  public float getProgress() {
    if (isAtEnd) {
      return 1;
    }
    long start = split.start().getTimestamp();
    long length = split.stop().getTimestamp() - start;
    return last == null || length <= 0 ? 0 : Math.min(1, (float) (last.getTimestamp() - start) / length);
  }

  @Override
  public void close() {
    if (brokers != null) {
      // An open scanner closes by itself.
      brokers.close();
    }
  }
}
