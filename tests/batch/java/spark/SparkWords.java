import com.etao.hadoop.hbase.queue.mapreduce.HQueueInputFormat;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueMessageKey;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Counts words with Spark: SparkWords BROKERS QUEUE. Prints "spark VERSION", "partition N HOST", and "WORD<TAB>COUNT" for each word. */
public class SparkWords {
  public static void main(String[] args) {
    SparkConf settings = new SparkConf().setMaster("local[2]").setAppName("words").set("spark.ui.enabled", "false")
        .set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1");
    try (JavaSparkContext spark = new JavaSparkContext(settings)) {
      System.out.println("spark " + spark.version());
      Configuration conf = new Configuration(spark.hadoopConfiguration());
      HQueueInputFormat.setQueue(conf, args[0], args[1]);
      // Spark drops counters: what is missing has to fail the task.
      conf.set("hqueue.input.on.missing", "fail");
      JavaPairRDD<HQueueMessageKey, BytesWritable> messages =
          spark.newAPIHadoopRDD(conf, HQueueInputFormat.class, HQueueMessageKey.class, BytesWritable.class);
      messages.partitions().forEach(part -> System.out.println("partition " + part.index() + " "
          + messages.rdd().preferredLocations(part).mkString(",")));
      // The objects are used again for each message: what is kept is copied out of them.
      messages.map(message -> new String(message._2.getBytes(), 0, message._2.getLength(), StandardCharsets.UTF_8))
          .flatMap(text -> Arrays.stream(text.split("[ \t\n\r\f]+")).filter(word -> !word.isEmpty()).iterator())
          .mapToPair(word -> new Tuple2<>(word, 1L)).reduceByKey(Long::sum).collect()
          .forEach(count -> System.out.println(count._1 + "\t" + count._2));
    }
  }
}
