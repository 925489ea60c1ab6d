// Puts messages and prints where they went. Usage: producer HOST:PORT QUEUE TOPIC VALUE...
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include "HQueueService.h"

using namespace apache::thrift;

int main(int argc, char** argv) {
  std::string address = argv[1];
  auto colon = address.rfind(':');
  auto socket = std::make_shared<transport::TSocket>(address.substr(0, colon), std::atoi(address.substr(colon + 1).c_str()));
  auto transport = std::make_shared<transport::TBufferedTransport>(socket);
  hqueue::HQueueServiceClient client(std::make_shared<protocol::TBinaryProtocol>(transport));

  std::vector<hqueue::TMessage> messages;
  for (int n = 4; n < argc; n++) {
    hqueue::TMessage message;
    message.topic = argv[3];
    message.value = argv[n];
    messages.push_back(message);
  }
  try {
    transport->open();
    hqueue::TPutResult put;
    client.putMessagesForIds(put, argv[2], -1, messages);  // -1: a random partition
    for (const auto& id : put.ids) {
      std::cout << put.partitionID << ' ' << id.timestamp << ':' << id.sequenceID << '\n';
    }
  } catch (const hqueue::HQueueError& refused) {
    std::cerr << "refused (" << refused.code << "): " << refused.message << '\n';
    return 1;
  } catch (const TException& failed) {
    std::cerr << failed.what() << '\n';
    return 1;
  }
}
