//! What the demo tells: where it runs, and how to attach a subscriber of one's own.

use std::net::SocketAddr;

/// Where everything is, for standard error.
pub(super) fn place(url: &str, http: Option<SocketAddr>) -> String {
    let metrics = http.map(|http| format!(", metrics on http://{http}/metrics")).unwrap_or_default();
    format!("A broker on {url}{metrics}; a queue, demo; a subscriber.\n")
}

/// How to attach a subscriber, for somebody at a terminal: there the demo runs until they end it.
pub(super) fn attach(url: &str) -> String {
    format!(
        "To attach a subscriber of your own in Python, while this runs, in another terminal, in the folder of the project:

python3 -m venv ~/hqueue-consumer
~/hqueue-consumer/bin/pip install thrift
thrift --gen py -out ~/hqueue-consumer idl/hqueue.thrift
cat > ~/hqueue-consumer/consumer.py <<'END'
{PYTHON}END
~/hqueue-consumer/bin/python ~/hqueue-consumer/consumer.py &
hqueue add_subscriber demo mine --address 127.0.0.1:9500 --from earliest --connect {url}
"
    )
}

const PYTHON: &str = r#"from hqueue import HQueueSubscriberService
from thrift.server.TServer import TThreadedServer
from thrift.transport import TSocket, TTransport
from thrift.protocol import TBinaryProtocol
class Printer:
    def consumeMessages(self, messages):
        for m in messages or []:
            print(m.partitionID, m.topic, m.value, flush=True)
        return 0
TThreadedServer(HQueueSubscriberService.Processor(Printer()), TSocket.TServerSocket("127.0.0.1", 9500),
                TTransport.TBufferedTransportFactory(), TBinaryProtocol.TBinaryProtocolFactory()).serve()
"#;
