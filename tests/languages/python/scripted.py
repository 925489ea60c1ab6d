"""A consumer that answers as it is told: scripted.py PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs)."""
import os
import sys
import time

from hqueue import HQueueSubscriberService
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.protocol.TCompactProtocol import TCompactProtocolFactory
from thrift.server.TNonblockingServer import TNonblockingServer
from thrift.server.TServer import TSimpleServer, TThreadedServer, TThreadPoolServer
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransportFactory, TFramedTransportFactory

port, kind, transport, protocol, answers = sys.argv[1:]
answers = [a for a in answers.split(",") if a != "-"]


class Scripted:
    def consumeMessages(self, messages):
        if not messages:
            return 0
        out = [b"call %d" % len(messages)]
        for m in messages:
            fields = (m.partitionID, m.id.timestamp, m.id.sequenceID, m.topic.hex().encode(), m.value.hex().encode())
            out.append(b"%d %d:%d %b %b" % fields)
        answer = answers.pop(0) if answers else "0"
        out.append(b"answer %b\n" % answer.encode())
        sys.stdout.buffer.write(b"\n".join(out))
        sys.stdout.flush()
        if answer == "throw" and kind == "none":  # threaded, with a handler that forgets to return
            return None
        if answer == "throw":
            raise RuntimeError("the handler fails")
        if answer == "die":
            os._exit(1)
        if answer.startswith("sleep:"):
            time.sleep(int(answer[6:]) / 1000)
            return 0
        return int(answer)


processor = HQueueSubscriberService.Processor(Scripted())
socket = TServerSocket("127.0.0.1", int(port))
transports = TFramedTransportFactory() if transport == "framed" else TBufferedTransportFactory()
protocols = {"binary": TBinaryProtocolFactory, "compact": TCompactProtocolFactory}[protocol]()
if kind == "nonblocking":
    server = TNonblockingServer(processor, socket, protocols, protocols)
else:
    server = {"threaded": TThreadedServer, "none": TThreadedServer, "pool": TThreadPoolServer, "simple": TSimpleServer}[kind](
        processor, socket, transports, protocols)
server.serve()
