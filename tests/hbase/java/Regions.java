import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;

/** Prints the port of each region server that has a region of a table, each once. */
public class Regions {
  public static void main(String[] a) throws Exception {
    try (Connection c = ConnectionFactory.createConnection(HBaseConfiguration.create()); RegionLocator regions = c.getRegionLocator(TableName.valueOf(a[0]))) {
      regions.getAllRegionLocations().stream().map(HRegionLocation::getPort).distinct().forEach(System.out::println);
    }
  }
}
