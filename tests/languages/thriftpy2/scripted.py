"""A consumer that answers as it is told: scripted.py PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs)."""
import os
import sys
import time

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory, TCyBinaryProtocolFactory
from thriftpy2.rpc import make_server
from thriftpy2.transport import (TBufferedTransportFactory, TCyBufferedTransportFactory, TCyFramedTransportFactory,
                                 TFramedTransportFactory)

port, kind, transport, protocol, answers = sys.argv[1:]
# Of the kind `original` it knows only what the original HQueue had.
original = os.path.join(os.path.dirname(os.path.abspath(__file__)), "original.thrift")
hqueue = thriftpy2.load(original if kind == "original" else os.environ["HQUEUE_IDL"], module_name="hqueue_thrift")
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
        if answer == "throw":
            raise RuntimeError("the handler fails")
        if answer == "die":
            os._exit(1)
        if answer.startswith("sleep:"):
            time.sleep(int(answer[6:]) / 1000)
            return 0
        return int(answer)


# Compiled where it can be (what make_server takes by itself), else plain Python.
compiled = kind != "plain"
transports = {
    ("buffered", True): TCyBufferedTransportFactory,
    ("framed", True): TCyFramedTransportFactory,
    ("buffered", False): TBufferedTransportFactory,
    ("framed", False): TFramedTransportFactory,
}[transport, compiled]
protocols = {
    ("binary", True): TCyBinaryProtocolFactory,
    ("binary", False): TBinaryProtocolFactory,
    ("compact", True): TCompactProtocolFactory,
    ("compact", False): TCompactProtocolFactory,
}[protocol, compiled]
make_server(hqueue.HQueueSubscriberService, Scripted(), "127.0.0.1", int(port),
            proto_factory=protocols(), trans_factory=transports()).serve()
