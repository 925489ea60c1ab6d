package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import java.util.Comparator;

/** Message ids: their order and their text. */
final class Ids {
  static final Comparator<TMessageID> ORDER =
      Comparator.comparingLong(TMessageID::getTimestamp).thenComparingInt(TMessageID::getSequenceID);

  static final TMessageID FIRST = new TMessageID(0, (short) 0);

  private Ids() {}

  static String text(TMessageID id) {
    return text(id.getTimestamp(), id.getSequenceID());
  }

  static String text(long timestamp, int sequence) {
    return timestamp + ":" + sequence;
  }

  /** The next possible id. */
  static TMessageID successor(TMessageID id) {
    return id.getSequenceID() == Short.MAX_VALUE
        ? new TMessageID(id.getTimestamp() + 1, (short) 0)
        : new TMessageID(id.getTimestamp(), (short) (id.getSequenceID() + 1));
  }

  static TMessageID smaller(TMessageID one, TMessageID other) {
    return ORDER.compare(one, other) <= 0 ? one : other;
  }

  /** Reads 1700000000000:12. */
  static TMessageID parse(String text) {
    int colon = text.indexOf(':');
    return new TMessageID(Long.parseLong(text.substring(0, colon)), Short.parseShort(text.substring(colon + 1)));
  }
}
