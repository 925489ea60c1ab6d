import com.etao.hadoop.hbase.queue.mapreduce.HQueueInputFormat;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueMessageKey;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;

/** Reads a queue some times with the input format, and with a plain loop over the same calls: Measure BROKER QUEUE ROUNDS. */
public class Measure {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    HQueueInputFormat.setQueue(conf, args[0], args[1]);
    for (int round = 1; round <= Integer.parseInt(args[2]); round++) {
      HQueueInputFormat format = new HQueueInputFormat();
      Job job = Job.getInstance(conf);
      long first = System.nanoTime();
      List<InputSplit> splits = format.getSplits(job);
      long began = System.nanoTime();
      long plain = PlainLoop.read(args[0], args[1]);
      long between = System.nanoTime();
      long read = read(conf, format, splits);
      long end = System.nanoTime();
      System.out.printf("round %d: plain loop %d rows, %.0f rows/s; HQueueInputFormat %d rows, %.0f rows/s; ratio %.2f; splits %.1f ms%n",
          round, plain,
          plain * 1e9 / (between - began), read, read * 1e9 / (end - between), (double) (between - began) / (end - between), (began - first) / 1e6);
    }
  }

  private static long read(Configuration conf, HQueueInputFormat format, List<InputSplit> splits) throws Exception {
    TaskAttemptContextImpl context = new TaskAttemptContextImpl(conf, new TaskAttemptID());
    long rows = 0;
    for (InputSplit split : splits) {
      try (RecordReader<HQueueMessageKey, BytesWritable> reader = format.createRecordReader(split, context)) {
        reader.initialize(split, context);
        while (reader.nextKeyValue()) {
          rows += reader.getCurrentValue().getLength() >= 0 ? 1 : 0;
        }
      }
    }
    return rows;
  }
}
