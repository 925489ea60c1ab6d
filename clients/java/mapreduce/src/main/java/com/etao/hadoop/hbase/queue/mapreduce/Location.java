package com.etao.hadoop.hbase.queue.mapreduce;

import java.util.Collection;

/** Where a partition lies, and the broker there, if there is one: what keeps the messages need not be a broker. */
final class Location {
  final String host;
  /** host:port of a broker on that host; empty: none is known. */
  final String broker;

  private Location(String host, String broker) {
    this.host = host;
    this.broker = broker;
  }

  /** @param address host:port, as getDataLocations names it */
  static Location of(String address, Collection<String> brokers) {
    String host = host(address);
    if (brokers.contains(address)) {
      return new Location(host, address);
    }
    String there = brokers.stream().filter(broker -> host(broker).equals(host)).findFirst().orElse("");
    return new Location(host, there);
  }

  private static String host(String address) {
    int colon = address.lastIndexOf(':');
    return colon < 0 ? address : address.substring(0, colon);
  }
}
