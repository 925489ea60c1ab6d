import java.util.*;
import java.util.concurrent.atomic.*;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/** Writes rows of a queue's schema as fast as HBase answers, without its gateway. Prints how many, and in how many milliseconds. */
public class Rows {
  static final byte[] MESSAGE = Bytes.toBytes("message"), TOPIC = Bytes.toBytes("t");

  /** TABLE THREADS ROWS-A-CALL VALUE-BYTES PARTITIONS WARM-UP-MS MS */
  public static void main(String[] a) throws Exception {
    int threads = Integer.parseInt(a[1]), rows = Integer.parseInt(a[2]), bytes = Integer.parseInt(a[3]), partitions = Integer.parseInt(a[4]);
    long begin = System.nanoTime() + Long.parseLong(a[5]) * 1_000_000, end = begin + Long.parseLong(a[6]) * 1_000_000;
    AtomicLong written = new AtomicLong();
    List<Thread> running = new ArrayList<>();
    List<Throwable> failed = Collections.synchronizedList(new ArrayList<>());
    try (Connection c = ConnectionFactory.createConnection(HBaseConfiguration.create())) {
      for (int n = 0; n < threads; n++) {
        int number = n;
        Thread thread = new Thread(() -> {
          try (Table table = c.getTable(TableName.valueOf(a[0]))) {
            byte[] value = new byte[bytes];
            new Random(number).nextBytes(value);
            for (long time = System.currentTimeMillis() + number * 100_000_000L; System.nanoTime() < end; time++) {
              byte[] partition = Bytes.toBytes((short) ((time + number) % partitions));
              List<Put> puts = new ArrayList<>(rows);
              for (short sequence = 0; sequence < rows; sequence++) {
                byte[] key = Bytes.add(partition, Bytes.toBytes(time), Bytes.toBytes(sequence));
                puts.add(new Put(key, time).addColumn(MESSAGE, TOPIC, value));
              }
              table.put(puts);
              if (System.nanoTime() > begin) written.addAndGet(rows);
            }
          } catch (Throwable e) {
            failed.add(e);
          }
        });
        running.add(thread);
        thread.start();
      }
      for (Thread thread : running) thread.join();
    }
    if (!failed.isEmpty()) throw new RuntimeException(failed.get(0));
    System.out.println(written.get() + " " + (System.nanoTime() - begin) / 1_000_000);
  }
}
