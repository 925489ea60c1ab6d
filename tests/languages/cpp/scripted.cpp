// A consumer that answers as it is told: scripted PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs).
#include <chrono>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <thrift/concurrency/ThreadFactory.h>
#include <thrift/concurrency/ThreadManager.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/server/TNonblockingServer.h>
#include <thrift/server/TSimpleServer.h>
#include <thrift/server/TThreadPoolServer.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TNonblockingServerSocket.h>
#include <thrift/transport/TServerSocket.h>

#include "HQueueSubscriberService.h"

using namespace apache::thrift;

static void hex(std::string& out, const std::string& bytes) {
  static const char* digits = "0123456789abcdef";
  for (unsigned char byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
}

class Scripted : public hqueue::HQueueSubscriberServiceIf {
 public:
  Scripted(const std::string& kind, const std::string& script) : kind(kind) {
    std::istringstream words(script);
    for (std::string word; std::getline(words, word, ',');) {
      if (word != "-") answers.push_back(word);
    }
  }

  int32_t consumeMessages(const std::vector<hqueue::TMessage>& messages) override {
    if (messages.empty()) return 0;
    std::lock_guard<std::mutex> guard(lock);
    std::string out = "call " + std::to_string(messages.size()) + "\n";
    for (const auto& m : messages) {
      out += std::to_string(m.partitionID) + ' ' + std::to_string(m.id.timestamp) + ':' + std::to_string(m.id.sequenceID) + ' ';
      hex(out, m.topic);
      out += ' ';
      if (kind != "quiet") hex(out, m.value);
      out += '\n';
    }
    std::string answer = "0";
    if (!answers.empty()) {
      answer = answers.front();
      answers.pop_front();
    }
    std::cout << out << "answer " << answer << std::endl;
    if (answer == "throw" && kind == "number") throw 1;
    if (answer == "throw") throw std::runtime_error("the handler fails");
    if (answer == "die") std::_Exit(1);
    if (answer.rfind("sleep:", 0) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(answer.c_str() + 6)));
      return 0;
    }
    return std::stoi(answer);
  }

 private:
  /// threaded, but: `number` throws what is no std::exception, `quiet` prints no values.
  const std::string kind;
  std::mutex lock;
  std::deque<std::string> answers;
};

int main(int, char** argv) {
  int port = std::atoi(argv[1]);
  std::string kind = argv[2];
  auto processor = std::make_shared<hqueue::HQueueSubscriberServiceProcessor>(std::make_shared<Scripted>(kind, argv[5]));
  std::shared_ptr<protocol::TProtocolFactory> protocols = std::make_shared<protocol::TBinaryProtocolFactory>(16384000, 100000, true, true);
  if (std::string(argv[4]) == "compact") protocols = std::make_shared<protocol::TCompactProtocolFactory>();
  if (kind == "nonblocking") {
    server::TNonblockingServer(processor, protocols, std::make_shared<transport::TNonblockingServerSocket>("127.0.0.1", port)).serve();
    return 0;
  }
  auto socket = std::make_shared<transport::TServerSocket>("127.0.0.1", port);
  std::shared_ptr<transport::TTransportFactory> transports = std::make_shared<transport::TBufferedTransportFactory>();
  if (std::string(argv[3]) == "framed") transports = std::make_shared<transport::TFramedTransportFactory>();
  if (kind == "simple") {
    server::TSimpleServer(processor, socket, transports, protocols).serve();
  } else if (kind == "pool") {
    auto pool = concurrency::ThreadManager::newSimpleThreadManager(4);
    pool->threadFactory(std::make_shared<concurrency::ThreadFactory>());
    pool->start();
    server::TThreadPoolServer(processor, socket, transports, protocols, pool).serve();
  } else {
    server::TThreadedServer(processor, socket, transports, protocols).serve();
  }
}
