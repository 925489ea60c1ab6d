import com.etao.hadoop.hbase.queue.shaded.thrift.protocol.TBinaryProtocol;
import com.etao.hadoop.hbase.queue.shaded.thrift.transport.TSocket;
import com.etao.hadoop.hbase.queue.thrift.generated.HQueueService;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageScan;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** What a program without Hadoop does. */
class PlainLoop {
  static long read(String address, String queueName) throws Exception {
    int colon = address.lastIndexOf(':');
    ByteBuffer queue = ByteBuffer.wrap(queueName.getBytes(StandardCharsets.UTF_8));
    long rows = 0;
    try (TSocket socket = new TSocket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)))) {
      socket.open();
      HQueueService.Client client = new HQueueService.Client(new TBinaryProtocol(socket));
      int partitions = client.getQueueLocations(queue).size();
      for (short partition = 0; partition < partitions; partition++) {
        int scanner = client.messageScannerOpen(queue, partition, new TMessageScan());
        List<TMessage> list;
        do {
          list = client.messageScannerGetList(scanner, 1000);
          for (TMessage message : list) {
            rows += message.getTopic().length + message.getValue().length >= 0 ? 1 : 0;
          }
        } while (!list.isEmpty());
        client.messageScannerClose(scanner);
      }
    }
    return rows;
  }
}
