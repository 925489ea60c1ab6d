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
      switch (a[0]) {
        case "make": make(c, name); break;
        case "other": other(c, name); break;
        case "forget": forget(c, name); break;
        case "describe": try (Admin admin = c.getAdmin()) { System.out.println(admin.getDescriptor(name)); } break;
        default: scan(c, name);
      }
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

  /** A table that is no queue. */
  static void other(Connection c, TableName name) throws Exception {
    try (Admin admin = c.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of(MESSAGE)).build());
    }
    try (Table t = c.getTable(name)) {
      t.put(new Put(Bytes.toBytes("k")).addColumn(MESSAGE, Bytes.toBytes("x"), Bytes.toBytes("somebody's")));
    }
  }

  /** Deletes what is known of the partitions of a queue. */
  static void forget(Connection c, TableName name) throws Exception {
    java.util.UUID id;
    try (Admin admin = c.getAdmin()) {
      id = java.util.UUID.fromString(admin.getDescriptor(name).getValue("hqueue.incarnation"));
    }
    byte[] prefix = Bytes.add(Bytes.toBytes(id.getMostSignificantBits()), Bytes.toBytes(id.getLeastSignificantBits()));
    int deleted = 0;
    try (Table t = c.getTable(TableName.valueOf("hqueue:partitions")); ResultScanner rows = t.getScanner(new Scan().setRowPrefixFilter(prefix))) {
      for (Result r : rows) {
        t.delete(new Delete(r.getRow()).addColumns(Bytes.toBytes("s"), Bytes.toBytes("s"), r.rawCells()[0].getTimestamp()));
        deleted++;
      }
    }
    if (deleted == 0) throw new IllegalStateException("no record of " + id);
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
