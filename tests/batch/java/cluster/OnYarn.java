import com.etao.hadoop.hbase.queue.mapreduce.HQueueCounter;
import com.etao.hadoop.hbase.queue.mapreduce.HQueueInputFormat;
import com.etao.hadoop.hbase.queue.mapreduce.examples.WordCount;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobCounter;
import org.apache.hadoop.mapreduce.v2.MiniMRYarnCluster;
import org.apache.hadoop.util.GenericOptionsParser;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;

/**
 * Counts words on a cluster of YARN: a resource manager, two node managers, one called localhost and one at HOST, and tasks in processes
 * of their own: OnYarn -D test.folder=FOLDER -D test.host=HOST BROKERS QUEUE FOLDER. Prints splits and counters as Local does.
 */
public class OnYarn {
  public static void main(String[] args) throws Exception {
    GenericOptionsParser options = new GenericOptionsParser(new YarnConfiguration(), args);
    Configuration conf = options.getConfiguration();
    String folder = conf.get("test.folder");
    settings(conf, folder);
    String[] words = options.getRemainingArgs();
    MiniMRYarnCluster cluster = new MiniMRYarnCluster("batch", 1);
    cluster.init(conf);
    cluster.start();
    NodeManager second = new NodeManager();
    second.init(node(cluster.getConfig(), folder));
    second.start();
    while (cluster.getResourceManager().getResourceScheduler().getNumClusterNodes() < 2) {
      Thread.sleep(50);
    }
    Thread watcher = new Thread(() -> {
      untilEndOfInput();
      // The test is over: containers are in no group of processes, but end with their node managers.
      second.stop();
      cluster.stop();
      Runtime.getRuntime().halt(1);
    });
    watcher.setDaemon(true);
    watcher.start();
    boolean isDone = run(cluster.getConfig(), words);
    System.out.println(isDone ? "succeeded" : "failed");
    System.out.flush();
    second.stop();
    cluster.stop();
    System.exit(isDone ? 0 : 1);
  }

  private static void untilEndOfInput() {
    try {
      while (System.in.read() >= 0) {
        // Nobody has anything to say.
      }
    } catch (IOException error) {
      System.err.println(error);
    }
  }

  private static void settings(Configuration conf, String folder) {
    conf.set("hadoop.tmp.dir", folder + "/tmp");
    conf.set("yarn.app.mapreduce.am.staging-dir", folder + "/staging");
    conf.set(YarnConfiguration.NM_BIND_HOST, "127.0.0.1");
    conf.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 256);
    conf.setInt(YarnConfiguration.YARN_MINICLUSTER_NM_PMEM_MB, 8192);
    conf.setInt(YarnConfiguration.NM_PMEM_MB, 8192);
    conf.setInt(YarnConfiguration.NM_VCORES, 16);
    conf.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 100);
    conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "0.5");
    for (String task : new String[] {"yarn.app.mapreduce.am.resource.mb", "mapreduce.map.memory.mb", "mapreduce.reduce.memory.mb"}) {
      conf.setInt(task, 512);
    }
    // The usual values of YARN's own file of settings, which is not here: wait for a local node, for as many offers as there are nodes. One
    // assignment a heartbeat, so that these are offers of both.
    conf.setInt("yarn.scheduler.capacity.node-locality-delay", 40);
    conf.setBoolean("yarn.scheduler.capacity.per-node-heartbeat.multiple-assignments-enabled", false);
    conf.setInt("mapreduce.task.io.sort.mb", 32);
    String java = "-Xmx320m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC --add-opens java.base/java.lang=ALL-UNNAMED";
    for (String task : new String[] {"yarn.app.mapreduce.am.command-opts", "mapreduce.map.java.opts", "mapreduce.reduce.java.opts"}) {
      conf.set(task, java);
    }
  }

  /** Of the second node manager; that of the mini cluster is called localhost. */
  private static Configuration node(Configuration cluster, String folder) {
    Configuration conf = new YarnConfiguration(cluster);
    String address = conf.get("test.host") + ":0";
    conf.set(YarnConfiguration.NM_BIND_HOST, conf.get("test.host"));
    conf.set(YarnConfiguration.NM_ADDRESS, address);
    conf.set(YarnConfiguration.NM_LOCALIZER_ADDRESS, address);
    conf.set(YarnConfiguration.NM_COLLECTOR_SERVICE_ADDRESS, address);
    conf.set(YarnConfiguration.NM_WEBAPP_ADDRESS, address);
    conf.set(YarnConfiguration.NM_LOCAL_DIRS, folder + "/second/local");
    conf.set(YarnConfiguration.NM_LOG_DIRS, folder + "/second/logs");
    return conf;
  }

  private static boolean run(Configuration conf, String[] words) throws Exception {
    Job job = WordCount.job(new Configuration(conf), words[0], words[1], "file://" + words[2]);
    for (InputSplit split : new HQueueInputFormat().getSplits(job)) {
      System.out.println("split " + split + " on " + String.join(",", split.getLocations()));
    }
    boolean isDone = job.waitForCompletion(true);
    for (Class<?> group : Arrays.asList(HQueueCounter.class, JobCounter.class)) {
      for (Counter counter : job.getCounters().getGroup(group.getName())) {
        System.out.println("counter " + counter.getName() + " " + counter.getValue());
      }
    }
    return isDone;
  }
}
