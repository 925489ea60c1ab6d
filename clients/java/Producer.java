import com.etao.hadoop.hbase.queue.thrift.generated.HQueueError;
import com.etao.hadoop.hbase.queue.thrift.generated.HQueueService;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSocket;

/** Puts messages and prints where they went. Usage: Producer HOST:PORT QUEUE TOPIC VALUE... */
public class Producer {
  static ByteBuffer bytes(String text) {
    return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
  }

  public static void main(String[] args) throws Exception {
    int colon = args[0].lastIndexOf(':');
    List<TMessage> messages = new ArrayList<>();
    for (int n = 3; n < args.length; n++) {
      messages.add(new TMessage(bytes(args[2]), bytes(args[n])));
    }
    try (var transport = new TSocket(args[0].substring(0, colon), Integer.parseInt(args[0].substring(colon + 1)))) {
      transport.open();
      var client = new HQueueService.Client(new TBinaryProtocol(transport));
      var put = client.putMessagesForIds(bytes(args[1]), (short) -1, messages); // -1: a random partition
      for (TMessageID id : put.getIds()) {
        System.out.println(put.getPartitionID() + " " + id.getTimestamp() + ":" + id.getSequenceID());
      }
    } catch (HQueueError refused) {
      System.err.println("refused (" + refused.getCode() + "): " + refused.getMessage());
      System.exit(1);
    }
  }
}
