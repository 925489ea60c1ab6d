import com.etao.hadoop.hbase.queue.thrift.generated.HQueueSubscriberService;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageID;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TSocket;

/** How many messages a second go through: Rate serve PORT, Rate call PORT (see speed/counting.rs). */
public class Rate implements HQueueSubscriberService.Iface {
  private static final int DIGITS = 10;
  private long next;
  private long calls;
  private long printed;

  @Override
  public synchronized int consumeMessages(List<TMessage> messages) {
    for (TMessage m : messages) {
      byte[] value = m.getValue();
      long number = 0;
      for (int n = 0; n < DIGITS; n++) {
        number = number * 10 + value[n] - '0';
      }
      if (number == 0) {
        System.out.println("run");
        next = calls = 0;
      }
      if (number != next || value.length != 1024) {
        System.out.println("fault message " + number + " of " + value.length + " bytes came where " + next + " was due");
      }
      next = number + 1;
    }
    calls += messages.isEmpty() ? 0 : 1;
    long now = System.nanoTime() / 1000;
    if (!messages.isEmpty() && now - printed >= 100_000) {
      printed = now;
      System.out.println("at " + now + " " + next + " " + calls);
    }
    return 0;
  }

  static void serve(int port) throws Exception {
    var socket = new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    new TThreadPoolServer(new TThreadPoolServer.Args(socket)
        .processor(new HQueueSubscriberService.Processor<>(new Rate()))
        .protocolFactory(new TBinaryProtocol.Factory())).serve();
  }

  static void call(int port) throws Exception {
    var transport = new TSocket("127.0.0.1", port);
    transport.open();
    var client = new HQueueSubscriberService.Client(new TBinaryProtocol(transport));
    List<TMessage> messages = new ArrayList<>();
    for (short n = 0; n < 100; n++) {
      byte[] value = new byte[1024];
      Arrays.fill(value, (byte) 'x');
      var message = new TMessage(ByteBuffer.wrap(new byte[] {'t'}), ByteBuffer.wrap(value));
      messages.add(message.setId(new TMessageID(1, n)).setPartitionID((short) 0));
    }
    for (long number = 0; ; ) {
      for (TMessage m : messages) {
        byte[] value = m.bufferForValue().array();
        long rest = number++;
        for (int n = DIGITS - 1; n >= 0; n--, rest /= 10) {
          value[n] = (byte) ('0' + rest % 10);
        }
        m.setValue(ByteBuffer.wrap(value));
      }
      client.consumeMessages(messages);
    }
  }

  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[1]);
    if (args[0].equals("serve")) {
      serve(port);
    } else {
      call(port);
    }
  }
}
