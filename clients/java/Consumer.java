import com.etao.hadoop.hbase.queue.thrift.generated.HQueueSubscriberService;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

/** Prints every message that a queue pushes. Usage: Consumer [PORT] */
public class Consumer implements HQueueSubscriberService.Iface {
  @Override
  public int consumeMessages(List<TMessage> messages) {
    for (TMessage m : messages) {
      // getTopic and getValue copy exactly the bytes of the field; bufferForValue().array() may hold more than these.
      System.out.printf("%d\t%d:%d\t", m.getPartitionID(), m.getId().getTimestamp(), m.getId().getSequenceID());
      System.out.writeBytes(m.getTopic());
      System.out.print('\t');
      System.out.writeBytes(m.getValue());
      System.out.print('\n');
    }
    System.out.flush();
    return 0; // all consumed; k: the first k; -1: failed, try again
  }

  public static void main(String[] args) throws Exception {
    int port = args.length > 0 ? Integer.parseInt(args[0]) : 9500;
    var socket = new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    new TThreadPoolServer(new TThreadPoolServer.Args(socket)
        .processor(new HQueueSubscriberService.Processor<>(new Consumer()))
        .protocolFactory(new TBinaryProtocol.Factory())).serve();
  }
}
