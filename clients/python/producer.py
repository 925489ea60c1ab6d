"""Puts messages and prints where they went. Usage: producer.py HOST:PORT QUEUE TOPIC VALUE..."""
import sys

from hqueue import HQueueService
from hqueue.ttypes import HQueueError, TMessage
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport


def main(address, queue, topic, *values):
    host, port = address.rsplit(":", 1)
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    client = HQueueService.Client(TBinaryProtocol(transport))
    messages = [TMessage(topic=topic.encode(), value=value.encode()) for value in values]
    try:
        put = client.putMessagesForIds(queue.encode(), -1, messages)  # -1: a random partition
    except HQueueError as refused:
        sys.exit(f"refused ({refused.code}): {refused.message}")
    finally:
        transport.close()
    for id in put.ids:
        print(put.partitionID, f"{id.timestamp}:{id.sequenceID}")


if __name__ == "__main__":
    main(*sys.argv[1:])
