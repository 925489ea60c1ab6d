import com.etao.hadoop.hbase.queue.thrift.generated.HQueueError;
import com.etao.hadoop.hbase.queue.thrift.generated.HQueueService;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessage;
import com.etao.hadoop.hbase.queue.thrift.generated.TMessageScan;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.layered.TFramedTransport;

/** Every call of the gateway: Gateway PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs). */
public class Gateway {
  interface Call {
    void run() throws TException;
  }

  static ByteBuffer bytes(int... values) {
    var buffer = ByteBuffer.allocate(values.length);
    for (int value : values) {
      buffer.put((byte) value);
    }
    return buffer.flip();
  }

  static ByteBuffer text(String text) {
    return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
  }

  static TMessage message(String topic, String value) {
    return new TMessage(text(topic), text(value));
  }

  static void show(String scanner, TMessage m) {
    var hex = HexFormat.of();
    System.out.println(scanner + " " + m.getId().getTimestamp() + ":" + m.getId().getSequenceID() + " "
        + hex.formatHex(m.getTopic()) + " " + hex.formatHex(m.getValue()));
  }

  static void refused(String what, Call call) throws TException {
    try {
      call.run();
      System.out.println("accepted " + what);
    } catch (HQueueError error) {
      System.out.println("refused " + what + " " + error.getCode() + " " + error.getMessage());
    }
  }

  public static void main(String[] args) throws Exception {
    var socket = new TSocket("127.0.0.1", Integer.parseInt(args[0]));
    var transport = args[1].equals("framed") ? new TFramedTransport(socket) : socket;
    transport.open();
    var protocol = args[2].equals("compact") ? new TCompactProtocol(transport) : new TBinaryProtocol(transport);
    var client = new HQueueService.Client(protocol);
    var queue = text(args[3]);

    var every = ByteBuffer.allocate(256);
    for (int n = 0; n < 256; n++) {
      every.put((byte) n);
    }
    client.putMessage(queue, new TMessage(text("one"), every.flip()));
    client.putMessage(queue, new TMessage(bytes(0xff, 0), text("own")).setPartitionID((short) 2));
    client.putMessages(queue, List.of(message("many", ""), message("many", "x"),
        new TMessage(text("many"), bytes(0xc3, 0x28))));
    client.putMessageWithPid(queue, (short) 1, message("with", "d\u00e9j\u00e0 vu"));
    List<TMessage> numbers = new ArrayList<>();
    for (int n = 0; n < 250; n++) {
      numbers.add(message(n % 2 == 1 ? "odd" : "even", Integer.toString(n)));
    }
    client.putMessagesWithPid(queue, (short) 0, numbers);

    int single = client.messageScannerOpen(queue, (short) 0,
        new TMessageScan().setTopics(List.of(text("odd"), text("even"))));
    List<TMessage> all = new ArrayList<>();
    for (TMessage m = client.messageScannerGet(single); m.isSetId(); m = client.messageScannerGet(single)) {
      all.add(m);
    }
    int lists = client.messageScannerOpen(queue, (short) 0,
        new TMessageScan().setTopics(List.of(text("even"), text("odd"))));
    int part = client.messageScannerOpen(queue, (short) 0, new TMessageScan()
        .setStartID(all.get(100).getId()).setStopID(all.get(200).getId()).setTopics(List.of(text("odd"))));
    all.forEach(m -> show("single", m));
    for (var got = client.messageScannerGetList(lists, 100); !got.isEmpty(); got = client.messageScannerGetList(lists, 100)) {
      got.forEach(m -> show("lists", m));
    }
    client.messageScannerGetList(part, 1000).forEach(m -> show("part", m));
    for (int scanner : new int[] {single, lists, part}) {
      client.messageScannerClose(scanner);
    }
    for (ByteBuffer location : client.getQueueLocations(queue)) {
      System.out.println("location " + StandardCharsets.UTF_8.decode(location));
    }

    var m = message("t", "v");
    refused("no-queue", () -> client.putMessage(text("no-such-queue"), m));
    refused("slash", () -> client.putMessages(text("a/b"), List.of(m)));
    refused("empty-name", () -> client.getQueueLocations(text("")));
    refused("bytes-name", () -> client.messageScannerOpen(bytes(0xff, 0), (short) 0, new TMessageScan()));
    refused("partition", () -> client.putMessageWithPid(queue, (short) 99, m));
    refused("long-topic", () -> client.putMessage(queue, message("t".repeat(256), "v")));
    refused("empty-topic", () -> client.putMessagesWithPid(queue, (short) 0, List.of(message("", "v"))));
    refused("large", () -> client.putMessage(queue, new TMessage(text("t"), ByteBuffer.allocate(4194305))));
    refused("closed", () -> client.messageScannerGet(single));
    refused("count", () -> client.messageScannerGetList(
        client.messageScannerOpen(queue, (short) 0, new TMessageScan()), 0));
  }
}
