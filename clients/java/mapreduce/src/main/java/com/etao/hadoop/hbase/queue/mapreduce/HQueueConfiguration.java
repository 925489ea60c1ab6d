package com.etao.hadoop.hbase.queue.mapreduce;

import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/** The settings of jobs. {@code docs/batch.md} explains each. */
public final class HQueueConfiguration {
  /** host:port of brokers, separated by commas; the next one is asked when one does not answer. */
  public static final String CONNECT = "hqueue.connect";
  /** Longest wait for the answer to a call: 30s. */
  public static final String CALL_TIMEOUT = "hqueue.call.timeout";
  /** How long no broker may answer, or the partition be offline, before the task fails: 2m. */
  public static final String PATIENCE = "hqueue.patience";

  public static final String INPUT_QUEUE = "hqueue.input.queue";
  /** A position, inclusive: earliest. */
  public static final String INPUT_START = "hqueue.input.start";
  /** A position, exclusive: latest, which is where the queue ends when the splits are made. */
  public static final String INPUT_STOP = "hqueue.input.stop";
  /** Separated by commas, each as in a URL (a%2Cb); none: all. */
  public static final String INPUT_TOPICS = "hqueue.input.topics";
  /** Messages a call: 1000. */
  public static final String INPUT_BATCH = "hqueue.input.batch.messages";
  /** What becomes of a task that meets messages that have expired or are damaged: count (and go on) or fail. */
  public static final String INPUT_ON_MISSING = "hqueue.input.on.missing";

  public static final String OUTPUT_QUEUE = "hqueue.output.queue";
  /** The topic of what is written with a NullWritable as its key. */
  public static final String OUTPUT_TOPIC = "hqueue.output.topic";
  /** random, or same: that of the key, which is then an HQueueMessageKey. */
  public static final String OUTPUT_PARTITION = "hqueue.output.partition";
  /** Messages a put, at most: 1000. */
  public static final String OUTPUT_BATCH = "hqueue.output.batch.messages";
  /** Bytes a put, at most, unless one message is larger: 1048576. */
  public static final String OUTPUT_BATCH_BYTES = "hqueue.output.batch.bytes";

  static final int MAX_BATCH_BYTES = 8 << 20;

  private HQueueConfiguration() {}

  static String required(Configuration conf, String setting) throws HQueueRefusedException {
    String value = conf.getTrimmed(setting, "");
    if (value.isEmpty()) {
      throw new HQueueRefusedException(setting + " is not set");
    }
    return value;
  }

  /** The brokers' addresses; hqueue:// may stand before them. */
  static List<String> addresses(Configuration conf) throws HQueueRefusedException {
    String text = required(conf, CONNECT);
    List<String> addresses = new ArrayList<>();
    for (String address : text.replaceFirst("^hqueue://", "").split(",", -1)) {
      if (!address.trim().matches("[^:/\\s]+:\\d{1,5}")) {
        throw new HQueueRefusedException(CONNECT + " is \"" + text + "\": \"" + address + "\" is no host:port of a broker");
      }
      addresses.add(address.trim());
    }
    return addresses;
  }

  static int number(Configuration conf, String setting, int usual, int most) throws HQueueRefusedException {
    String text = conf.getTrimmed(setting, Integer.toString(usual));
    int number = text.matches("\\d{1,9}") ? Integer.parseInt(text) : 0;
    if (number < 1 || number > most) {
      throw new HQueueRefusedException(setting + " is \"" + text + "\": a number from 1 to " + most + " is wanted");
    }
    return number;
  }

  /** One of these words; the first is the usual one. */
  static String oneOf(Configuration conf, String setting, String... words) throws HQueueRefusedException {
    String text = conf.getTrimmed(setting, words[0]);
    for (String word : words) {
      if (word.equals(text)) {
        return text;
      }
    }
    throw new HQueueRefusedException(setting + " is \"" + text + "\": " + String.join(" or ", words) + " is wanted");
  }

  static String encodeTopics(String... topics) {
    List<String> encoded = new ArrayList<>();
    for (String topic : topics) {
      try {
        encoded.add(URLEncoder.encode(topic, "UTF-8").replace("+", "%20"));
      } catch (UnsupportedEncodingException never) {
        throw new IllegalStateException(never);
      }
    }
    return String.join(",", encoded);
  }

  /** Their bytes: %ff stands for the byte 255, which is no UTF-8. */
  static List<ByteBuffer> topics(Configuration conf) throws HQueueRefusedException {
    List<ByteBuffer> topics = new ArrayList<>();
    String text = conf.getTrimmed(INPUT_TOPICS, "");
    if (text.isEmpty()) {
      return topics;
    }
    for (String topic : text.split(",", -1)) {
      topics.add(ByteBuffer.wrap(decode(topic)));
      int length = topics.get(topics.size() - 1).remaining();
      if (length < 1 || length > 255) {
        throw new HQueueRefusedException(
            INPUT_TOPICS + " is \"" + text + "\": the topic \"" + topic + "\" has " + length + " bytes, a topic has 1 to 255");
      }
    }
    return topics;
  }

  private static byte[] decode(String topic) throws HQueueRefusedException {
    try {
      // Latin 1 keeps each byte; what is not encoded is UTF-8.
      String utf8 = new String(topic.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
      return URLDecoder.decode(utf8.replace("+", "%2B"), "ISO-8859-1").getBytes(StandardCharsets.ISO_8859_1);
    } catch (UnsupportedEncodingException | IllegalArgumentException error) {
      throw new HQueueRefusedException(INPUT_TOPICS + ": \"" + topic + "\" is not encoded as in a URL: " + error.getMessage(), error);
    }
  }
}
