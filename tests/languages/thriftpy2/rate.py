"""How many messages a second go through: rate.py serve PORT, rate.py call PORT (see speed/counting.rs)."""
import os
import sys
import time

import thriftpy2
from thriftpy2.rpc import make_client, make_server

hqueue = thriftpy2.load(os.environ["HQUEUE_IDL"], module_name="hqueue_thrift")


class Counter:
    next = calls = printed = 0

    def consumeMessages(self, messages):
        for m in messages:
            number = int(m.value[:10])
            if number == 0:
                print("run")
                self.next = self.calls = 0
            if number != self.next or len(m.value) != 1024:
                print("fault", f"message {number} of {len(m.value)} bytes came where {self.next} was due", flush=True)
            self.next = number + 1
        self.calls += 1 if messages else 0
        now = time.monotonic_ns() // 1000
        if messages and now - self.printed >= 100_000:
            self.printed = now
            print("at", now, self.next, self.calls, flush=True)
        return 0


def serve(port):
    make_server(hqueue.HQueueSubscriberService, Counter(), "127.0.0.1", port).serve()


def call(port):
    client = make_client(hqueue.HQueueSubscriberService, "127.0.0.1", port, timeout=60_000)
    filling = b"x" * 1014
    messages = [hqueue.TMessage(id=hqueue.TMessageID(1, n), partitionID=0, topic=b"t") for n in range(100)]
    number = 0
    while True:
        for m in messages:
            m.value = b"%010d" % number + filling
            number += 1
        client.consumeMessages(messages)


{"serve": serve, "call": call}[sys.argv[1]](int(sys.argv[2]))
