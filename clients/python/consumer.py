"""Prints every message that a queue pushes. Usage: consumer.py [PORT]"""
import sys

from hqueue import HQueueSubscriberService
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransportFactory


class Printer:
    def consumeMessages(self, messages):
        for m in messages or []:
            line = b"%d\t%d:%d\t%b\t%b\n" % (m.partitionID, m.id.timestamp, m.id.sequenceID, m.topic, m.value)
            sys.stdout.buffer.write(line)  # topic and value are bytes
        sys.stdout.flush()
        return 0  # all consumed; k: the first k; -1: failed, try again


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9500
    TThreadedServer(
        HQueueSubscriberService.Processor(Printer()),
        TServerSocket("127.0.0.1", port),
        TBufferedTransportFactory(),
        TBinaryProtocolFactory(),
        daemon=True,
    ).serve()
