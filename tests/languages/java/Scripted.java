import com.etao.hadoop.hbase.queue.thrift.generated.HQueueSubscriberService;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.server.THsHaServer;
import org.apache.thrift.server.TNonblockingServer;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.server.TThreadedSelectorServer;
import org.apache.thrift.transport.TNonblockingServerSocket;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.layered.TFramedTransport;

/** A consumer that answers as it is told: Scripted PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs). */
public class Scripted implements HQueueSubscriberService.Iface {
  private final ArrayDeque<String> answers = new ArrayDeque<>();

  Scripted(String answers) {
    if (!answers.equals("-")) {
      this.answers.addAll(Arrays.asList(answers.split(",")));
    }
  }

  @Override
  public synchronized int consumeMessages(List<TMessage> messages) {
    if (messages.isEmpty()) {
      return 0;
    }
    var hex = HexFormat.of();
    var out = new StringBuilder("call " + messages.size() + "\n");
    for (TMessage m : messages) {
      out.append(m.getPartitionID()).append(' ').append(m.getId().getTimestamp()).append(':');
      out.append(m.getId().getSequenceID()).append(' ').append(hex.formatHex(m.getTopic())).append(' ');
      out.append(hex.formatHex(m.getValue())).append('\n');
    }
    String answer = answers.isEmpty() ? "0" : answers.pop();
    System.out.print(out.append("answer ").append(answer).append('\n'));
    System.out.flush();
    if (answer.equals("throw")) {
      throw new IllegalStateException("the handler fails");
    }
    if (answer.equals("die")) {
      Runtime.getRuntime().halt(1);
    }
    if (answer.startsWith("sleep:")) {
      try {
        Thread.sleep(Integer.parseInt(answer.substring(6)));
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      return 0;
    }
    return Integer.parseInt(answer);
  }

  public static void main(String[] args) throws Exception {
    var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0]));
    var processor = new HQueueSubscriberService.Processor<>(new Scripted(args[4]));
    var protocol = args[3].equals("compact") ? new TCompactProtocol.Factory() : new TBinaryProtocol.Factory();
    if (args[1].equals("pool")) {
      var pool = new TThreadPoolServer.Args(new TServerSocket(address)).processor(processor).protocolFactory(protocol);
      if (args[2].equals("framed")) {
        pool.transportFactory(new TFramedTransport.Factory());
      }
      new TThreadPoolServer(pool).serve();
      return;
    }
    var socket = new TNonblockingServerSocket(address);
    TServer server = switch (args[1]) {
      case "selector" -> new TThreadedSelectorServer(
          new TThreadedSelectorServer.Args(socket).processor(processor).protocolFactory(protocol));
      case "hsha" -> new THsHaServer(new THsHaServer.Args(socket).processor(processor).protocolFactory(protocol));
      case "nonblocking" -> new TNonblockingServer(
          new TNonblockingServer.Args(socket).processor(processor).protocolFactory(protocol));
      default -> throw new IllegalArgumentException(args[1]);
    };
    server.serve();
  }
}
