import java.nio.charset.StandardCharsets;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/** HBase's own client, which knows of a queue nothing but the schema: row = partition, timestamp, sequence; message:topic = value. */
public class Foreign {
  static final byte[] MESSAGE = Bytes.toBytes("message");

  public static void main(String[] a) throws Exception {
    try (Connection c = ConnectionFactory.createConnection(HBaseConfiguration.create())) {
      TableName name = TableName.valueOf(a[1]);
      if (a[0].equals("make")) make(c, name); else scan(c, name);
    }
  }

  static void make(Connection c, TableName name) throws Exception {
    try (Admin admin = c.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of(MESSAGE)).build());
    }
    try (Table t = c.getTable(name)) {
      for (short p = 0; p < 2; p++) {
        for (short s = 0; s < 3; s++) {
          byte[] row = Bytes.add(Bytes.toBytes(p), Bytes.toBytes(1600000000000L + p), Bytes.toBytes(s));
          t.put(new Put(row).addColumn(MESSAGE, Bytes.toBytes("topic" + s), Bytes.toBytes("foreign " + p + " " + s)));
        }
      }
    }
  }

  static void scan(Connection c, TableName name) throws Exception {
    try (Table t = c.getTable(name); ResultScanner rows = t.getScanner(new Scan().addFamily(MESSAGE))) {
      for (Result r : rows) {
        byte[] k = r.getRow();
        Cell m = r.rawCells()[0];
        System.out.println(Bytes.toShort(k, 0) + "\t" + Bytes.toLong(k, 2) + ":" + Bytes.toShort(k, 10) + "\t"
            + Bytes.toString(CellUtil.cloneQualifier(m)) + "\t" + new String(CellUtil.cloneValue(m), StandardCharsets.UTF_8));
      }
    }
  }
}
