import com.etao.hadoop.hbase.queue.mapreduce.HQueueCounter;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueInputFormat;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueMessageKey;
import com.etao.hadoop.hbase.queue.mapreduce.examples.Copy;
import com.etao.hadoop.hbase.queue.mapreduce.examples.WordCount;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.util.GenericOptionsParser;

/**
 * Runs the jobs of the module in this process: Local [-D SETTING=VALUE]... wordcount BROKERS QUEUE FOLDER | copy BROKERS FROM TO.
 *
 * <p>Prints "split TEXT" for each split, "counter NAME VALUE" for each counter, and "succeeded", "failed" or "refused TEXT". With
 * -D test.pause.before=true, before the splits are made ("paused -1"), and with -D test.pause.at=N, once the splits are made ("paused 0") and at its Nth message ("paused N"), it waits for a line on standard input.
 */
public class Local {
  static final String PAUSE_AT = "test.pause.at";
  static final String PAUSE_BEFORE = "test.pause.before";

  /** Waits for a line. */
  static void pause(long at) throws IOException {
    System.out.println("paused " + at);
    for (int read = System.in.read(); read != '\n'; read = System.in.read()) {
      if (read < 0) {
        throw new IOException("the test is over");
      }
    }
  }

  /** The word count that waits. */
  public static class Pausing extends WordCount.Words {
    private long seen;

    @Override
    protected void map(HQueueMessageKey key, BytesWritable value, Context context) throws IOException, InterruptedException {
      super.map(key, value, context);
      if (++seen == context.getConfiguration().getLong(PAUSE_AT, 0)) {
        pause(seen);
      }
    }
  }

  /** The copy that waits. */
  public static class PausingCopy extends Mapper<HQueueMessageKey, BytesWritable, HQueueMessageKey, BytesWritable> {
    private long seen;

    @Override
    protected void map(HQueueMessageKey key, BytesWritable value, Context context) throws IOException, InterruptedException {
      super.map(key, value, context);
      if (++seen == context.getConfiguration().getLong(PAUSE_AT, 0)) {
        pause(seen);
      }
    }
  }

  /** Shows the splits. */
  public static class Showing extends HQueueInputFormat {
    @Override
    public List<InputSplit> getSplits(JobContext context) throws IOException, InterruptedException {
      if (context.getConfiguration().getBoolean(PAUSE_BEFORE, false)) {
        pause(-1);
      }
      List<InputSplit> splits = super.getSplits(context);
      for (InputSplit split : splits) {
        System.out.println("split " + split + " on " + String.join(",", split.getLocations()));
      }
      if (context.getConfiguration().getLong(PAUSE_AT, 0) > 0) {
        pause(0);
      }
      return splits;
    }
  }

  public static void main(String[] args) throws Exception {
    GenericOptionsParser options = new GenericOptionsParser(new Configuration(), args);
    Configuration conf = options.getConfiguration();
    String[] words = options.getRemainingArgs();
    Job job = words[0].equals("copy") ? Copy.job(conf, words[1], words[2], words[3]) : WordCount.job(conf, words[1], words[2], words[3]);
    job.setInputFormatClass(Showing.class);
    if (conf.getLong(PAUSE_AT, 0) > 0) {
      job.setMapperClass(words[0].equals("copy") ? PausingCopy.class : Pausing.class);
    }
    try {
      job.submit();
    } catch (IOException refused) {
      System.out.println("refused " + refused.getMessage());
      System.exit(1);
    }
    job.monitorAndPrintJob();
    for (Counter counter : job.getCounters().getGroup(HQueueCounter.class.getName())) {
      System.out.println("counter " + counter.getName() + " " + counter.getValue());
    }
    boolean isDone = job.getStatus().getState() == JobStatus.State.SUCCEEDED;
    System.out.println(isDone ? "succeeded" : "failed");
    System.exit(isDone ? 0 : 1);
  }
}
