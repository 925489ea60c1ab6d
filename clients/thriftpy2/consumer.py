"""Prints every message that a queue pushes. Usage: consumer.py [PORT]"""
import os
import sys

import thriftpy2
from thriftpy2.rpc import make_server

idl = os.environ.get("HQUEUE_IDL", os.path.join(os.path.dirname(__file__), "../../idl/hqueue.thrift"))
hqueue = thriftpy2.load(idl, module_name="hqueue_thrift")


class Printer:
    def consumeMessages(self, messages):
        for m in messages or []:
            line = b"%d\t%d:%d\t%b\t%b\n" % (m.partitionID, m.id.timestamp, m.id.sequenceID, m.topic, m.value)
            sys.stdout.buffer.write(line)  # topic and value are bytes
        sys.stdout.flush()
        return 0  # all consumed; k: the first k; -1: failed, try again


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9500
    make_server(hqueue.HQueueSubscriberService, Printer(), "127.0.0.1", port).serve()
