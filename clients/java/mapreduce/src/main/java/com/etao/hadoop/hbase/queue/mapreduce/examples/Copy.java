package com.etao.hadoop.hbase.queue.mapreduce.examples;

import com.etao.hadoop.hbase.queue.mapreduce.HQueueInputFormat;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueMessageKey;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueOutputFormat;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Puts a queue's messages into another queue: Copy BROKERS FROM TO. With -D hqueue.output.partition=same they keep their partition and
 * their order.
 */
public class Copy extends Configured implements Tool {
  /** The job, for those who change it. */
  public static Job job(Configuration conf, String brokers, String from, String to) throws IOException {
    HQueueInputFormat.setQueue(conf, brokers, from);
    HQueueOutputFormat.setQueue(conf, brokers, to);
    Job job = Job.getInstance(conf, "queue " + from + " into " + to);
    job.setJarByClass(Copy.class);
    job.setInputFormatClass(HQueueInputFormat.class);
    job.setOutputFormatClass(HQueueOutputFormat.class);
    job.setMapperClass(Mapper.class);
    job.setNumReduceTasks(0);
    job.setOutputKeyClass(HQueueMessageKey.class);
    job.setOutputValueClass(BytesWritable.class);
    return job;
  }

  @Override
  public int run(String[] args) throws Exception {
    if (args.length != 3) {
      System.err.println("usage: copy [-D SETTING=VALUE]... BROKERS FROM TO");
      return 2;
    }
    return job(getConf(), args[0], args[1], args[2]).waitForCompletion(true) ? 0 : 1;
  }

  public static void main(String[] args) throws Exception {
    System.exit(ToolRunner.run(new Copy(), args));
  }
}
