// Prints every message that a queue pushes. Usage: consumer [PORT]
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>

#include "HQueueSubscriberService.h"

using namespace apache::thrift;

class Printer : public hqueue::HQueueSubscriberServiceIf {
  int32_t consumeMessages(const std::vector<hqueue::TMessage>& messages) override {
    for (const auto& m : messages) {
      // A std::string holds any bytes.
      std::cout << m.partitionID << '\t' << m.id.timestamp << ':' << m.id.sequenceID << '\t' << m.topic << '\t' << m.value << '\n';
    }
    std::cout.flush();
    return 0;  // all consumed; k: the first k; -1: failed, try again
  }
};

int main(int argc, char** argv) {
  // Limits for strings and lists, and the version word demanded: without these a stray byte makes the process allocate until it ends.
  auto protocols = std::make_shared<protocol::TBinaryProtocolFactory>(16384000, 100000, true, true);
  int port = argc > 1 ? std::atoi(argv[1]) : 9500;
  server::TThreadedServer server(std::make_shared<hqueue::HQueueSubscriberServiceProcessor>(std::make_shared<Printer>()),
                                 std::make_shared<transport::TServerSocket>("127.0.0.1", port),
                                 std::make_shared<transport::TBufferedTransportFactory>(),
                                 protocols);
  server.serve();
}
