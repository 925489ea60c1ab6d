package com.etao.hadoop.hbase.queue.mapreduce.examples;

import org.apache.hadoop.util.ProgramDriver;

/** What {@code hadoop jar hqueue-mapreduce-1.jar} runs. */
public final class Main {
  private Main() {}

  public static void main(String[] args) throws Throwable {
    ProgramDriver programs = new ProgramDriver();
    programs.addClass("wordcount", WordCount.class, "counts the words of a queue's messages: wordcount BROKERS QUEUE FOLDER");
    programs.addClass("copy", Copy.class, "puts a queue's messages into another queue: copy BROKERS FROM TO");
    System.exit(programs.run(args));
  }
}
