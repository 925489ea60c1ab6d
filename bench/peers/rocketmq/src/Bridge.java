import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingException;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * RocketMQ's own client between the driver and its broker: frames in, sends out; what is fetched goes to the driver as the floor's pushes,
 * and its position is stored once the driver has answered.
 *
 * <pre>
 * put      length u32 | queue u16 | partition u16 | count u32 | messages       message: 11 bytes | length u32 | value | 0
 * answer   4 u32 | 0 u32                                                       in the order of the puts
 * push     length u32 | length u32 | partition u16 | count u32 | messages
 * </pre>
 *
 * Arguments: name server, broker, port, queues, partitions, then a port of the driver for each subscriber.
 */
public final class Bridge {
    /** The head of a message in the driver's form: topic "t", and the field of the value. */
    private static final byte[] HEAD = {0x0b, 0, 3, 0, 0, 0, 1, 't', 0x0b, 0, 4};
    private static final long PATIENCE_MS = 180_000;
    private static final int SEND_TIMEOUT_MS = 60_000;
    /** What waits for the same partition is sent together up to so much. */
    private static final int BATCH_BYTES = 1 << 20;
    private static final int FETCH = 512;
    private static final long COMMIT_NS = 100_000_000L;

    private final Map<String, MessageQueue> places = new HashMap<>();
    private final ExecutorService senders = Executors.newCachedThreadPool();

    public static void main(String[] args) throws Exception {
        new Bridge().run(args);
    }

    private void run(String[] args) throws Exception {
        String names = args[0];
        String broker = args[1];
        int port = Integer.parseInt(args[2]);
        int queues = Integer.parseInt(args[3]);
        int partitions = Integer.parseInt(args[4]);
        makeTopics(names, broker, queues, partitions);
        DefaultMQProducer producer = new DefaultMQProducer("producer");
        producer.setNamesrvAddr(names);
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        // Tried again here, where the order is kept.
        producer.setRetryTimesWhenSendFailed(0);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        findPlaces(producer, queues, partitions);
        for (int subscriber = 5; subscriber < args.length; subscriber++) {
            Subscriber own = new Subscriber(names, "receiver" + (subscriber - 5), Integer.parseInt(args[subscriber]));
            start("subscriber", own::run);
        }
        try (ServerSocket server = new ServerSocket()) {
            server.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port));
            while (true) {
                Socket socket = server.accept();
                start("producer", () -> new Connection(producer, socket).run());
            }
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    /** The driver sees from the end of this process that something went wrong. */
    private static void start(String name, Work work) {
        new Thread(() -> {
            try {
                work.run();
            } catch (java.io.EOFException | java.net.SocketException ended) {
                // The driver has gone.
            } catch (Throwable failure) {
                failure.printStackTrace();
                System.exit(1);
            }
        }, name).start();
    }

    private void makeTopics(String names, String broker, int queues, int partitions) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(names);
        admin.start();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        for (int queue = 0; queue < queues; queue++) {
            TopicConfig topic = new TopicConfig("bench" + queue, partitions, partitions);
            while (true) {
                try {
                    admin.createAndUpdateTopicConfig(broker, topic);
                    break;
                } catch (Exception notYet) {
                    retry(deadline, notYet);
                }
            }
        }
        admin.shutdown();
    }

    private void findPlaces(DefaultMQProducer producer, int queues, int partitions) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        for (int queue = 0; queue < queues; queue++) {
            while (true) {
                try {
                    List<MessageQueue> found = producer.fetchPublishMessageQueues("bench" + queue);
                    if (found.size() == partitions) {
                        for (MessageQueue place : found) {
                            places.put(queue + "-" + place.getQueueId(), place);
                        }
                        break;
                    }
                    retry(deadline, new MQClientException("bench" + queue + " has " + found.size() + " queues", null));
                } catch (MQClientException notYet) {
                    retry(deadline, notYet);
                }
            }
        }
    }

    private static void retry(long deadline, Exception reason) throws Exception {
        if (System.currentTimeMillis() > deadline) {
            throw reason;
        }
        Thread.sleep(20);
    }

    /** A put on its way. */
    private static final class Put {
        final List<Message> messages = new ArrayList<>();
        int bytes;
        final CompletableFuture<Void> done = new CompletableFuture<>();
    }

    /** The puts of one producer into one partition: one send at a time, since only that keeps their order. */
    private final class Lane {
        private final DefaultMQProducer producer;
        private final MessageQueue place;
        private final ArrayDeque<Put> waiting = new ArrayDeque<>();
        private boolean running;

        Lane(DefaultMQProducer producer, MessageQueue place) {
            this.producer = producer;
            this.place = place;
        }

        synchronized void add(Put put) {
            waiting.add(put);
            if (!running) {
                running = true;
                senders.execute(this::sendAll);
            }
        }

        private synchronized List<Put> next() {
            List<Put> some = new ArrayList<>();
            int bytes = 0;
            while (!waiting.isEmpty() && (some.isEmpty() || bytes + waiting.peek().bytes <= BATCH_BYTES)) {
                bytes += waiting.peek().bytes;
                some.add(waiting.poll());
            }
            running = !some.isEmpty();
            return some;
        }

        private void sendAll() {
            for (List<Put> some = next(); !some.isEmpty(); some = next()) {
                List<Message> messages = new ArrayList<>();
                some.forEach(put -> messages.addAll(put.messages));
                try {
                    send(messages);
                    some.forEach(put -> put.done.complete(null));
                } catch (Exception failure) {
                    some.forEach(put -> put.done.completeExceptionally(failure));
                }
            }
        }

        /** A connection that breaks, or a broker that is busy, is tried again: nothing of this lane can come before it meanwhile. */
        private void send(List<Message> messages) throws Exception {
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (true) {
                try {
                    SendResult sent = messages.size() == 1 ? producer.send(messages.get(0), place) : producer.send(messages, place);
                    if (sent.getSendStatus() != SendStatus.SEND_OK) {
                        throw new IOException("a send ended with " + sent.getSendStatus());
                    }
                    return;
                } catch (MQBrokerException | RemotingException busy) {
                    retry(deadline, busy);
                }
            }
        }
    }

    private final class Connection {
        private final DefaultMQProducer producer;
        private final Socket socket;
        private final Map<Integer, Lane> lanes = new HashMap<>();
        private final BlockingQueue<Put> unanswered = new LinkedBlockingQueue<>();

        Connection(DefaultMQProducer producer, Socket socket) {
            this.producer = producer;
            this.socket = socket;
        }

        void run() throws Exception {
            socket.setTcpNoDelay(true);
            start("answers", this::answerAll);
            DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 18));
            while (true) {
                in.readInt();
                int queue = in.readUnsignedShort();
                int partition = in.readUnsignedShort();
                Put put = new Put();
                for (int left = in.readInt(); left > 0; left--) {
                    in.skipNBytes(HEAD.length);
                    byte[] value = new byte[in.readInt()];
                    in.readFully(value);
                    in.skipNBytes(1);
                    put.bytes += value.length;
                    put.messages.add(new Message("bench" + queue, value));
                }
                unanswered.add(put);
                lanes.computeIfAbsent(queue << 16 | partition, key -> new Lane(producer, places.get(queue + "-" + partition))).add(put);
            }
        }

        private void answerAll() throws Exception {
            DataOutputStream out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
            while (true) {
                unanswered.take().done.get();
                out.writeInt(4);
                out.writeInt(0);
                Put next = unanswered.peek();
                if (next == null || !next.done.isDone()) {
                    out.flush();
                }
            }
        }
    }

    /** Fetches everything for one subscriber. */
    private final class Subscriber {
        private final DefaultLitePullConsumer consumer;
        private final DataOutputStream out;
        private final DataInputStream in;

        Subscriber(String names, String group, int port) throws Exception {
            Socket socket = new Socket(InetAddress.getByName("127.0.0.1"), port);
            socket.setTcpNoDelay(true);
            out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream(), 1 << 18));
            in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            consumer = new DefaultLitePullConsumer(group);
            consumer.setNamesrvAddr(names);
            consumer.setInstanceName(group);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setPullBatchSize(FETCH);
            consumer.setAutoCommit(false);
            consumer.start();
            consumer.assign(new ArrayList<>(places.values()));
        }

        void run() throws Exception {
            long committed = System.nanoTime();
            boolean dirty = false;
            while (true) {
                List<MessageExt> messages = consumer.poll(dirty ? 20 : 1000);
                if (!messages.isEmpty()) {
                    push(messages);
                    dirty = true;
                }
                if (dirty && System.nanoTime() - committed > COMMIT_NS) {
                    consumer.commit();
                    committed = System.nanoTime();
                    dirty = false;
                }
            }
        }

        private void push(List<MessageExt> messages) throws IOException {
            int bytes = 6;
            for (MessageExt message : messages) {
                bytes += HEAD.length + 4 + message.getBody().length + 1;
            }
            out.writeInt(bytes + 4);
            out.writeInt(bytes);
            out.writeShort(messages.get(0).getQueueId());
            out.writeInt(messages.size());
            for (MessageExt message : messages) {
                out.write(HEAD);
                out.writeInt(message.getBody().length);
                out.write(message.getBody());
                out.writeByte(0);
            }
            out.flush();
            in.readLong();
        }
    }
}
