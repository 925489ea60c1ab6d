// Every call of the gateway: gateway PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs).
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include "HQueueService.h"

using namespace apache::thrift;
using hqueue::TMessage;

static TMessage message(const std::string& topic, const std::string& value) {
  TMessage m;
  m.topic = topic;
  m.value = value;
  return m;
}

static std::string hex(const std::string& bytes) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (unsigned char byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

static void show(const char* scanner, const std::vector<TMessage>& messages) {
  for (const auto& m : messages) {
    std::cout << scanner << ' ' << m.id.timestamp << ':' << m.id.sequenceID << ' ' << hex(m.topic) << ' ' << hex(m.value) << '\n';
  }
}

template <typename Call>
static void refused(const char* what, Call call) {
  try {
    call();
    std::cout << "accepted " << what << '\n';
  } catch (const hqueue::HQueueError& error) {
    std::cout << "refused " << what << ' ' << error.code << ' ' << error.message << '\n';
  }
}

static hqueue::TMessageScan topics(const std::vector<std::string>& names) {
  hqueue::TMessageScan scan;
  scan.__set_topics(names);
  return scan;
}

int main(int, char** argv) {
  std::shared_ptr<transport::TTransport> transport = std::make_shared<transport::TSocket>("127.0.0.1", std::atoi(argv[1]));
  if (std::string(argv[2]) == "framed") {
    transport = std::make_shared<transport::TFramedTransport>(transport);
  } else {
    transport = std::make_shared<transport::TBufferedTransport>(transport);
  }
  std::shared_ptr<protocol::TProtocol> protocol = std::make_shared<protocol::TBinaryProtocol>(transport);
  if (std::string(argv[3]) == "compact") protocol = std::make_shared<protocol::TCompactProtocol>(transport);
  hqueue::HQueueServiceClient client(protocol);
  transport->open();
  std::string queue = argv[4];

  std::string every;
  for (int n = 0; n < 256; n++) every += static_cast<char>(n);
  client.putMessage(queue, message("one", every));
  TMessage own = message(std::string("\xff\0", 2), "own");
  own.__set_partitionID(2);
  client.putMessage(queue, own);
  client.putMessages(queue, {message("many", ""), message("many", "x"), message("many", "\xc3\x28")});
  client.putMessageWithPid(queue, 1, message("with", "d\u00e9j\u00e0 vu"));
  std::vector<TMessage> numbers;
  for (int n = 0; n < 250; n++) numbers.push_back(message(n % 2 ? "odd" : "even", std::to_string(n)));
  client.putMessagesWithPid(queue, 0, numbers);

  auto single = client.messageScannerOpen(queue, 0, topics({"odd", "even"}));
  std::vector<TMessage> all;
  for (;;) {
    TMessage m;
    client.messageScannerGet(m, single);
    if (!m.__isset.id) break;
    all.push_back(m);
  }
  auto lists = client.messageScannerOpen(queue, 0, topics({"even", "odd"}));
  auto some = topics({"odd"});
  some.__set_startID(all[100].id);
  some.__set_stopID(all[200].id);
  auto part = client.messageScannerOpen(queue, 0, some);
  show("single", all);
  std::vector<TMessage> got;
  for (client.messageScannerGetList(got, lists, 100); !got.empty(); client.messageScannerGetList(got, lists, 100)) show("lists", got);
  client.messageScannerGetList(got, part, 1000);
  show("part", got);
  for (auto scanner : {single, lists, part}) client.messageScannerClose(scanner);
  std::vector<std::string> locations;
  client.getQueueLocations(locations, queue);
  for (const auto& location : locations) std::cout << "location " << location << '\n';

  TMessage m = message("t", "v"), answer;
  refused("no-queue", [&] { client.putMessage("no-such-queue", m); });
  refused("slash", [&] { client.putMessages("a/b", {m}); });
  refused("empty-name", [&] { client.getQueueLocations(locations, ""); });
  refused("bytes-name", [&] { client.messageScannerOpen(std::string("\xff\0", 2), 0, hqueue::TMessageScan()); });
  refused("partition", [&] { client.putMessageWithPid(queue, 99, m); });
  refused("long-topic", [&] { client.putMessage(queue, message(std::string(256, 't'), "v")); });
  refused("empty-topic", [&] { client.putMessagesWithPid(queue, 0, {message("", "v")}); });
  refused("large", [&] { client.putMessage(queue, message("t", std::string(4194305, '\0'))); });
  refused("closed", [&] { client.messageScannerGet(answer, single); });
  refused("count", [&] { client.messageScannerGetList(got, client.messageScannerOpen(queue, 0, hqueue::TMessageScan()), 0); });
}
