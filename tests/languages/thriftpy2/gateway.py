"""Every call of the gateway: gateway.py PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs)."""
import os
import sys

import thriftpy2
from thriftpy2.protocol import TCompactProtocolFactory, TCyBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TCyBufferedTransportFactory, TCyFramedTransportFactory

hqueue = thriftpy2.load(os.environ["HQUEUE_IDL"], module_name="hqueue_thrift")
from hqueue_thrift import HQueueError, HQueueService, TMessage, TMessageScan  # noqa: E402 (the load makes the module)

port, transport, protocol, queue = sys.argv[1:]
queue = queue.encode()
transports = {"framed": TCyFramedTransportFactory, "buffered": TCyBufferedTransportFactory}[transport]()
protocols = {"binary": TCyBinaryProtocolFactory, "compact": TCompactProtocolFactory}[protocol]()
client = make_client(HQueueService, "127.0.0.1", int(port), proto_factory=protocols, trans_factory=transports, timeout=60_000)


def show(scanner, m):
    print(scanner, f"{m.id.timestamp}:{m.id.sequenceID}", m.topic.hex(), m.value.hex())


def refused(what, call):
    try:
        call()
        print("accepted", what)
    except HQueueError as error:
        print("refused", what, error.code, error.message)


client.putMessage(queue, TMessage(topic=b"one", value=bytes(range(256))))
client.putMessage(queue, TMessage(partitionID=2, topic=b"\xff\x00", value=b"own"))
client.putMessages(queue, [TMessage(topic=b"many", value=v) for v in (b"", b"x", b"\xc3\x28")])
client.putMessageWithPid(queue, 1, TMessage(topic=b"with", value="d\u00e9j\u00e0 vu".encode()))
numbers = [TMessage(topic=b"odd" if n % 2 else b"even", value=str(n).encode()) for n in range(250)]
client.putMessagesWithPid(queue, 0, numbers)

single = client.messageScannerOpen(queue, 0, TMessageScan(topics=[b"odd", b"even"]))
all_of_it = [client.messageScannerGet(single)]
while all_of_it[-1].id is not None:
    all_of_it.append(client.messageScannerGet(single))
all_of_it.pop()
lists = client.messageScannerOpen(queue, 0, TMessageScan(topics=[b"even", b"odd"]))
some = TMessageScan(startID=all_of_it[100].id, stopID=all_of_it[200].id, topics=[b"odd"])
part = client.messageScannerOpen(queue, 0, some)
for m in all_of_it:
    show("single", m)
while got := client.messageScannerGetList(lists, 100):
    for m in got:
        show("lists", m)
for m in client.messageScannerGetList(part, 1000):
    show("part", m)
for scanner in (single, lists, part):
    client.messageScannerClose(scanner)
for location in client.getQueueLocations(queue):
    print("location", location.decode())

m = TMessage(topic=b"t", value=b"v")
refused("no-queue", lambda: client.putMessage(b"no-such-queue", m))
refused("slash", lambda: client.putMessages(b"a/b", [m]))
refused("empty-name", lambda: client.getQueueLocations(b""))
refused("bytes-name", lambda: client.messageScannerOpen(b"\xff\x00", 0, TMessageScan()))
refused("partition", lambda: client.putMessageWithPid(queue, 99, m))
refused("long-topic", lambda: client.putMessage(queue, TMessage(topic=b"t" * 256, value=b"v")))
refused("empty-topic", lambda: client.putMessagesWithPid(queue, 0, [TMessage(topic=b"", value=b"v")]))
refused("large", lambda: client.putMessage(queue, TMessage(topic=b"t", value=bytes(4194305))))
refused("closed", lambda: client.messageScannerGet(single))
refused("count", lambda: client.messageScannerGetList(client.messageScannerOpen(queue, 0, TMessageScan()), 0))
