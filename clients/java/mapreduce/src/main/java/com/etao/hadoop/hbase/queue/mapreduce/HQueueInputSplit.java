package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.InputSplit;

/** A range of one partition. Where it ends was fixed when the splits were made. */
public class HQueueInputSplit extends InputSplit implements Writable {
  private int partition;
  private String host = "";
  /** host:port of a broker there; empty: none is known. */
  private String broker = "";
  private TMessageID start = Ids.FIRST;
  private TMessageID stop = Ids.FIRST;
  /** The last message of the range is known to be this one; null: it is not known. */
  private TMessageID last;
  private long bytes;

  public HQueueInputSplit() {}

  HQueueInputSplit(int partition, Location at, TMessageID start, TMessageID stop, TMessageID last, long bytes) {
    this.partition = partition;
    host = at.host;
    broker = at.broker;
    this.start = start;
    this.stop = stop;
    this.last = last;
    this.bytes = bytes;
  }

  public int getPartition() {
    return partition;
  }

  /** host:port of the broker to ask first; empty: there is none on the partition's host. */
  public String getBroker() {
    return broker;
  }

  /** The first id wanted: 1700000000000:12. */
  public String getStart() {
    return Ids.text(start);
  }

  /** The first id no longer wanted. */
  public String getStop() {
    return Ids.text(stop);
  }

  TMessageID start() {
    return start;
  }

  TMessageID stop() {
    return stop;
  }

  TMessageID last() {
    return last;
  }

  boolean isEmpty() {
    return Ids.ORDER.compare(start, stop) >= 0;
  }

  /** Bytes of the whole partition if the range is not empty: what is in the range is not known. */
  @Override
  public long getLength() {
    return bytes;
  }

  /** The host where the partition lies. */
  @Override
  public String[] getLocations() {
    return new String[] {host};
  }

  @Override
  public void write(DataOutput out) throws IOException {
    out.writeShort(partition);
    out.writeUTF(host);
    out.writeUTF(broker);
    write(out, start);
    write(out, stop);
    out.writeBoolean(last != null);
    if (last != null) {
      write(out, last);
    }
    out.writeLong(bytes);
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    partition = in.readShort();
    host = in.readUTF();
    broker = in.readUTF();
    start = read(in);
    stop = read(in);
    last = in.readBoolean() ? read(in) : null;
    bytes = in.readLong();
  }

  private static void write(DataOutput out, TMessageID id) throws IOException {
    out.writeLong(id.getTimestamp());
    out.writeShort(id.getSequenceID());
  }

  private static TMessageID read(DataInput in) throws IOException {
    long timestamp = in.readLong();
    return new TMessageID(timestamp, in.readShort());
  }

  @Override
  public String toString() {
    return "partition " + partition + " at " + host + (broker.isEmpty() ? "" : " (broker " + broker + ")") + " from " + getStart() + " to " + getStop();
  }
}
