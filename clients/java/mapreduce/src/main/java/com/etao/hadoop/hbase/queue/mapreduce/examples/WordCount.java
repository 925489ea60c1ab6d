package com.etao.hadoop.hbase.queue.mapreduce.examples;

import com.etao.hadoop.hbase.queue.mapreduce.HQueueInputFormat;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueMessageKey;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.StringTokenizer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.reduce.LongSumReducer;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** Counts the words of a queue's messages: WordCount BROKERS QUEUE FOLDER. Settings go before them: -D hqueue.input.start=-1h. */
public class WordCount extends Configured implements Tool {
  /** Splits at white space. */
  public static class Words extends Mapper<HQueueMessageKey, BytesWritable, Text, LongWritable> {
    private static final LongWritable ONE = new LongWritable(1);
    private final Text word = new Text();

    @Override
    protected void map(HQueueMessageKey key, BytesWritable value, Context context) throws IOException, InterruptedException {
      // The array may be longer than the value.
      String text = new String(value.getBytes(), 0, value.getLength(), StandardCharsets.UTF_8);
      StringTokenizer words = new StringTokenizer(text);
      while (words.hasMoreTokens()) {
        word.set(words.nextToken());
        context.write(word, ONE);
      }
    }
  }

  /** The job, for those who change it. */
  public static Job job(Configuration conf, String brokers, String queue, String folder) throws IOException {
    HQueueInputFormat.setQueue(conf, brokers, queue);
    Job job = Job.getInstance(conf, "words of queue " + queue);
    job.setJarByClass(WordCount.class);
    job.setInputFormatClass(HQueueInputFormat.class);
    job.setMapperClass(Words.class);
    job.setCombinerClass(LongSumReducer.class);
    job.setReducerClass(LongSumReducer.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(LongWritable.class);
    FileOutputFormat.setOutputPath(job, new Path(folder));
    return job;
  }

  @Override
  public int run(String[] args) throws Exception {
    if (args.length != 3) {
      System.err.println("usage: wordcount [-D SETTING=VALUE]... BROKERS QUEUE FOLDER");
      return 2;
    }
    return job(getConf(), args[0], args[1], args[2]).waitForCompletion(true) ? 0 : 1;
  }

  public static void main(String[] args) throws Exception {
    System.exit(ToolRunner.run(new WordCount(), args));
  }
}
