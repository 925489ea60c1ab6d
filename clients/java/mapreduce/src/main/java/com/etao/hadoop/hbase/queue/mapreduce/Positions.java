package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import java.time.DateTimeException;
import java.time.OffsetDateTime;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Positions as people write them, the same as on the command line of HQueue. */
final class Positions {
  private static final Pattern ID = Pattern.compile("\\d{3,19}:\\d{1,5}");
  private static final Pattern MILLISECONDS = Pattern.compile("\\d{12,18}");
  private static final Pattern AGO = Pattern.compile("-(\\d{1,12})(ms|s|m|h|d)");

  private Positions() {}

  /**
   * The first id that is meant, in a partition whose newest message is {@code last} (null: it has none).
   *
   * @throws HQueueRefusedException if the text, the value of {@code setting}, is no position
   */
  static TMessageID resolve(String setting, String text, long nowMs, TMessageID last) throws HQueueRefusedException {
    if (text.equals("earliest")) {
      return Ids.FIRST;
    }
    if (text.equals("latest")) {
      return last == null ? Ids.FIRST : Ids.successor(last);
    }
    try {
      if (ID.matcher(text).matches()) {
        return Ids.parse(text);
      }
      if (MILLISECONDS.matcher(text).matches()) {
        return atTime(Long.parseLong(text));
      }
      Matcher ago = AGO.matcher(text);
      if (ago.matches()) {
        return atTime(nowMs - unit(ago.group(2)).toMillis(Long.parseLong(ago.group(1))));
      }
      return atTime(OffsetDateTime.parse(text).toInstant().toEpochMilli());
    } catch (NumberFormatException | DateTimeException | ArithmeticException error) {
      throw new HQueueRefusedException(setting + " is \"" + text + "\", which is no position: an id (1700000000000:12), milliseconds"
          + " since 1970 (1700000000000), a time with its zone (2026-03-29T02:30:00Z), -10m, earliest or latest");
    }
  }

  private static TMessageID atTime(long ms) {
    return new TMessageID(Math.max(ms, 0), (short) 0);
  }

  private static TimeUnit unit(String name) {
    switch (name) {
      case "ms":
        return TimeUnit.MILLISECONDS;
      case "s":
        return TimeUnit.SECONDS;
      case "m":
        return TimeUnit.MINUTES;
      case "h":
        return TimeUnit.HOURS;
      default:
        return TimeUnit.DAYS;
    }
  }
}
