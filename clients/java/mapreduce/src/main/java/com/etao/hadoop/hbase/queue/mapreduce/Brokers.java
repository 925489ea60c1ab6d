package com.etao.hadoop.hbase.queue.mapreduce;

import com.etao.hadoop.hbase.queue.thrift.generated.HQueueAdminService;
import com.etao.hadoop.hbase.queue.thrift.generated.HQueueError;
import com.etao.hadoop.hbase.queue.thrift.generated.HQueueService;
import com.etao.hadoop.hbase.queue.thrift.generated.TErrorCode;
import java.io.Closeable;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.Progressable;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSocket;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A connection to one broker of several, and to the next one when that fails. For one thread. */
final class Brokers implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(Brokers.class);
  private static final int CONNECT_MS = 3000;
  private static final long LEAST_PAUSE_MS = 50;
  private static final long MOST_PAUSE_MS = 2000;

  /** What is asked over a connection. It is asked again over another one, if this one fails. */
  interface Call<T> {
    T on(Brokers brokers) throws TException;
  }

  private final List<String> addresses;
  private final int callMs;
  private final long patienceMs;
  private final Progressable progress;
  private int at;
  private TSocket socket;
  private HQueueService.Client gateway;
  private HQueueService.Client beside;
  private HQueueAdminService.Client admin;

  /** @param first host:port to ask first; empty: the first of those in the configuration */
  Brokers(Configuration conf, String first, Progressable progress) throws HQueueRefusedException {
    Set<String> all = new LinkedHashSet<>();
    if (!first.isEmpty()) {
      all.add(first);
    }
    all.addAll(HQueueConfiguration.addresses(conf));
    addresses = new ArrayList<>(all);
    callMs = (int) Math.min(Integer.MAX_VALUE, duration(conf, HQueueConfiguration.CALL_TIMEOUT, 30));
    patienceMs = duration(conf, HQueueConfiguration.PATIENCE, 120);
    this.progress = progress;
  }

  private static long duration(Configuration conf, String setting, int usualSeconds) throws HQueueRefusedException {
    try {
      long ms = conf.getTimeDuration(setting, TimeUnit.SECONDS.toMillis(usualSeconds), TimeUnit.MILLISECONDS);
      if (ms > 0) {
        return ms;
      }
    } catch (NumberFormatException error) {
      // It is said below.
    }
    throw new HQueueRefusedException(setting + " is \"" + conf.get(setting) + "\", which is no time: 500ms, 30s, 2m");
  }

  /** The calls for clients; inside of a {@link Call}. */
  HQueueService.Client gateway() {
    return gateway;
  }

  /** The same on the same connection, to send a call before the reply to one of {@link #gateway}: a client counts its own calls only. */
  HQueueService.Client beside() {
    return beside;
  }

  /** The calls for administration; inside of a {@link Call}. */
  HQueueAdminService.Client admin() {
    return admin;
  }

  /**
   * Asks the broker, and others if it does not answer or cannot now, until the patience has gone.
   *
   * @throws HQueueRefusedException if the broker refuses for good
   */
  <T> T call(String what, Call<T> call) throws IOException, InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(patienceMs);
    long pause = LEAST_PAUSE_MS;
    for (int tries = 1;; tries++) {
      String address = addresses.get(at);
      Exception trouble;
      try {
        connect();
        return call.on(this);
      } catch (HQueueError refused) {
        if (!mayPass(refused)) {
          disconnect();
          throw new HQueueRefusedException(what + ": refused by " + address + ": " + refused.getMessage(), refused);
        }
        trouble = refused;
      } catch (TApplicationException error) {
        if (error.getType() == TApplicationException.UNKNOWN_METHOD) {
          disconnect();
          throw new HQueueRefusedException(what + ": the broker at " + address + " is too old: " + error.getMessage(), error);
        }
        trouble = error;
      } catch (TException error) {
        trouble = error;
      }
      disconnect();
      LOG.info("{}: {}: {}", what, address, text(trouble));
      if (System.nanoTime() >= deadline) {
        throw new IOException(what + ": not done within " + patienceMs + " ms (" + HQueueConfiguration.PATIENCE + ") by "
            + String.join(", ", addresses) + "; the last try: " + address + ": " + text(trouble), trouble);
      }
      progress.progress();
      at = (at + 1) % addresses.size();
      if (tries % addresses.size() == 0) {
        Thread.sleep(pause);
        pause = Math.min(pause * 2, MOST_PAUSE_MS);
      }
    }
  }

  private static String text(Exception trouble) {
    if (trouble.getCause() instanceof SocketTimeoutException) {
      return trouble.getCause().getMessage() + " (" + HQueueConfiguration.CALL_TIMEOUT + ")";
    }
    return trouble.getMessage() == null ? trouble.getClass().getSimpleName() : trouble.getMessage();
  }

  /** May the same call succeed later without anybody's doing? */
  private static boolean mayPass(HQueueError refused) {
    TErrorCode code = TErrorCode.findByValue(refused.getCode());
    return code == null || code == TErrorCode.OFFLINE || code == TErrorCode.NO_SPACE || code == TErrorCode.BUSY
        || code == TErrorCode.FAILED;
  }

  private void connect() throws TException {
    if (socket != null) {
      return;
    }
    String address = addresses.get(at);
    int colon = address.lastIndexOf(':');
    int port = Integer.parseInt(address.substring(colon + 1));
    TSocket opened = new TSocket(new TConfiguration(), address.substring(0, colon), port, callMs, CONNECT_MS);
    opened.open();
    socket = opened;
    TBinaryProtocol protocol = new TBinaryProtocol(socket);
    gateway = new HQueueService.Client(protocol);
    beside = new HQueueService.Client(protocol);
    admin = new HQueueAdminService.Client(protocol);
  }

  private void disconnect() {
    if (socket != null) {
      socket.close();
      socket = null;
    }
  }

  @Override
  public void close() {
    disconnect();
  }
}
