package com.etao.hadoop.hbase.queue.mapreduce;

import java.io.IOException;

/** A broker has refused, or a setting is wrong: doing it again will not help. */
public class HQueueRefusedException extends IOException {
  private static final long serialVersionUID = 1;

  public HQueueRefusedException(String message) {
    super(message);
  }

  HQueueRefusedException(String message, Throwable cause) {
    super(message, cause);
  }
}
