package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.TQueueDescription;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.OutputFormat;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts into a queue. The key says the topic: a Text, a BytesWritable, an HQueueMessageKey (with its headers), or a NullWritable for
 * the topic of the configuration. The value is a Text or a BytesWritable.
 *
 * <p>Everything that a task wrote is acknowledged before the task commits. Nothing is taken back: what an attempt had put before it failed
 * stays, and the next attempt puts it again.
 */
public class HQueueOutputFormat extends OutputFormat<Writable, Writable> {
  private static final Logger LOG = LoggerFactory.getLogger(HQueueOutputFormat.class);

  /** Puts into this queue, by these brokers (host:port, separated by commas), without speculative attempts, which would put twice. */
  public static void setQueue(Configuration conf, String brokers, String queue) {
    conf.set(HQueueConfiguration.CONNECT, brokers);
    conf.set(HQueueConfiguration.OUTPUT_QUEUE, queue);
    conf.setBoolean(MRJobConfig.MAP_SPECULATIVE, false);
    conf.setBoolean(MRJobConfig.REDUCE_SPECULATIVE, false);
  }

  @Override
  public void checkOutputSpecs(JobContext context) throws IOException, InterruptedException {
    Configuration conf = context.getConfiguration();
    String queue = HQueueConfiguration.required(conf, HQueueConfiguration.OUTPUT_QUEUE);
    HQueueRecordWriter.check(conf);
    try (Brokers brokers = new Brokers(conf, "", () -> { })) {
      ByteBuffer name = ByteBuffer.wrap(queue.getBytes(StandardCharsets.UTF_8));
      TQueueDescription found = brokers.call("output into queue " + queue, b -> b.admin().describeQueue(name));
      if (!"enabled".equals(found.getState())) {
        throw new HQueueRefusedException("output into queue " + queue + ": it is " + found.getState() + " and takes no messages");
      }
    }
    if (conf.getBoolean(MRJobConfig.MAP_SPECULATIVE, true) || conf.getBoolean(MRJobConfig.REDUCE_SPECULATIVE, true)) {
      LOG.warn("{} or {} is on: what speculative attempts put is in queue {} twice", MRJobConfig.MAP_SPECULATIVE,
          MRJobConfig.REDUCE_SPECULATIVE, queue);
    }
  }

  @Override
  public RecordWriter<Writable, Writable> getRecordWriter(TaskAttemptContext context) throws IOException {
    return new HQueueRecordWriter(context);
  }

  /** There is nothing left to do: a writer is closed, and all is acknowledged, before its task commits. */
  @Override
  public OutputCommitter getOutputCommitter(TaskAttemptContext context) {
    return new OutputCommitter() {
      @Override
      public void setupJob(JobContext job) {}

      @Override
      public void setupTask(TaskAttemptContext task) {}

      @Override
      public boolean needsTaskCommit(TaskAttemptContext task) {
        return false;
      }

      @Override
      public void commitTask(TaskAttemptContext task) {}

      @Override
      public void abortTask(TaskAttemptContext task) {}
    };
  }
}
