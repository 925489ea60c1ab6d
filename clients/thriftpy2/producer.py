"""Puts messages and prints where they went. Usage: producer.py HOST:PORT QUEUE TOPIC VALUE..."""
import os
import sys

import thriftpy2
from thriftpy2.rpc import make_client

idl = os.environ.get("HQUEUE_IDL", os.path.join(os.path.dirname(__file__), "../../idl/hqueue.thrift"))
hqueue = thriftpy2.load(idl, module_name="hqueue_thrift")


def main(address, queue, topic, *values):
    host, port = address.rsplit(":", 1)
    client = make_client(hqueue.HQueueService, host, int(port), timeout=60_000)
    messages = [hqueue.TMessage(topic=topic.encode(), value=value.encode()) for value in values]
    try:
        put = client.putMessagesForIds(queue.encode(), -1, messages)  # -1: a random partition
    except hqueue.HQueueError as refused:
        sys.exit(f"refused ({refused.code}): {refused.message}")
    finally:
        client.close()
    for id in put.ids:
        print(put.partitionID, f"{id.timestamp}:{id.sequenceID}")


if __name__ == "__main__":
    main(*sys.argv[1:])
