"""A consumer that announces itself, where no fixed endpoint is wanted. Usage: subscriber.py BROKER:PORT QUEUE NAME [PORT]"""
import signal
import sys
import threading

from hqueue import HQueueService
from hqueue.ttypes import HQueueError, TErrorCode, TRegistration
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.transport.TSocket import TServerSocket, TSocket
from thrift.transport.TTransport import TBufferedTransport, TBufferedTransportFactory, TTransportException

from consumer import HQueueSubscriberService, Printer


def call(broker, method, *arguments):
    """One call over a connection of its own: renewals are seconds apart."""
    host, port = broker.rsplit(":", 1)
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    try:
        return getattr(HQueueService.Client(TBinaryProtocol(transport)), method)(*arguments)
    finally:
        transport.close()


def main(broker, queue, name, port="9500"):
    server = TThreadedServer(HQueueSubscriberService.Processor(Printer()), TServerSocket("127.0.0.1", int(port)),
                             TBufferedTransportFactory(), TBinaryProtocolFactory(), daemon=True)
    threading.Thread(target=server.serve, daemon=True).start()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    me = TRegistration(subscriber=name.encode(), address=f"127.0.0.1:{port}", topics=[], partitions=[], startPosition="earliest")
    registered = call(broker, "subscribe", queue.encode(), me)
    while not stop.wait(registered.lifetimeMs / 3000):  # renewed three times in a lifetime
        try:
            call(broker, "renew", registered.registrationID)
        except HQueueError as ended:
            if ended.code != TErrorCode.NOT_FOUND:
                raise
            registered = call(broker, "subscribe", queue.encode(), me)
        except TTransportException as away:
            print(f"the broker is away: {away}", file=sys.stderr)
    call(broker, "unsubscribe", registered.registrationID)


if __name__ == "__main__":
    main(*sys.argv[1:])
