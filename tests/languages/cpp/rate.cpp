// How many messages a second go through: rate serve PORT, rate call PORT (see speed/counting.rs).
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>
#include <thrift/transport/TSocket.h>

#include "HQueueSubscriberService.h"

using namespace apache::thrift;

static const int digits = 10;

class Counter : public hqueue::HQueueSubscriberServiceIf {
 public:
  int32_t consumeMessages(const std::vector<hqueue::TMessage>& messages) override {
    std::lock_guard<std::mutex> guard(lock);
    for (const auto& m : messages) {
      int64_t number = 0;
      for (int n = 0; n < digits; n++) number = number * 10 + m.value[n] - '0';
      if (number == 0) {
        std::cout << "run" << std::endl;
        next = calls = 0;
      }
      if (number != next || m.value.size() != 1024) {
        std::cout << "fault message " << number << " of " << m.value.size() << " bytes came where " << next << " was due" << std::endl;
      }
      next = number + 1;
    }
    if (messages.empty()) return 0;
    calls++;
    using namespace std::chrono;
    int64_t now = duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
    if (now - printed >= 100000) {
      printed = now;
      std::cout << "at " << now << ' ' << next << ' ' << calls << std::endl;
    }
    return 0;
  }

 private:
  std::mutex lock;
  int64_t next = 0, calls = 0, printed = 0;
};

static void serve(int port) {
  server::TThreadedServer(std::make_shared<hqueue::HQueueSubscriberServiceProcessor>(std::make_shared<Counter>()),
                          std::make_shared<transport::TServerSocket>("127.0.0.1", port),
                          std::make_shared<transport::TBufferedTransportFactory>(),
                          std::make_shared<protocol::TBinaryProtocolFactory>(16384000, 100000, true, true))
      .serve();
}

static void call(int port) {
  auto transport = std::make_shared<transport::TBufferedTransport>(std::make_shared<transport::TSocket>("127.0.0.1", port));
  hqueue::HQueueSubscriberServiceClient client(std::make_shared<protocol::TBinaryProtocol>(transport));
  transport->open();
  std::vector<hqueue::TMessage> messages(100);
  for (int n = 0; n < 100; n++) {
    hqueue::TMessageID id;
    id.__set_timestamp(1);
    id.__set_sequenceID(n);
    messages[n].__set_id(id);
    messages[n].__set_partitionID(0);
    messages[n].__set_topic("t");
    messages[n].__set_value(std::string(1024, 'x'));
  }
  for (int64_t number = 0;;) {
    for (auto& m : messages) {
      int64_t rest = number++;
      for (int n = digits - 1; n >= 0; n--, rest /= 10) m.value[n] = '0' + rest % 10;
    }
    client.consumeMessages(messages);
  }
}

int main(int, char** argv) {
  (std::string(argv[1]) == "serve" ? serve : call)(std::atoi(argv[2]));
}
