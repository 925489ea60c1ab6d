// How many messages a second go through: rate.js serve PORT, rate.js call PORT (see speed/counting.rs).
const thrift = require("thrift");
const HQueueSubscriberService = require("./generated/HQueueSubscriberService");
const { TMessage, TMessageID } = require("./generated/hqueue_types");

const dialect = { transport: thrift.TBufferedTransport, protocol: thrift.TBinaryProtocol };

function serve(port) {
  let [next, calls, printed] = [0, 0, 0];
  const handler = {
    consumeMessages(messages, result) {
      for (const m of messages) {
        const number = Number(m.value.latin1Slice(0, 10));
        if (number === 0) {
          console.log("run");
          next = calls = 0;
        }
        if (number !== next || m.value.length !== 1024) {
          console.log(`fault message ${number} of ${m.value.length} bytes came where ${next} was due`);
        }
        next = number + 1;
      }
      const now = Math.round(performance.now() * 1000);
      if (messages.length > 0 && ++calls && now - printed >= 100_000) {
        printed = now;
        console.log(`at ${now} ${next} ${calls}`);
      }
      result(null, 0);
    },
  };
  const server = thrift.createServer(HQueueSubscriberService, handler, dialect);
  server.on("error", (error) => console.error(`${error}`));
  server.listen(port, "127.0.0.1");
}

function call(port) {
  const client = thrift.createClient(HQueueSubscriberService, thrift.createConnection("127.0.0.1", port, dialect));
  const messages = [];
  for (let n = 0; n < 100; n++) {
    const id = new TMessageID({ timestamp: 1, sequenceID: n });
    messages.push(new TMessage({ id, partitionID: 0, topic: Buffer.from("t"), value: Buffer.alloc(1024, "x") }));
  }
  let number = 0;
  const next = (error) => {
    if (error) {
      throw error;
    }
    for (const m of messages) {
      m.value.latin1Write(`${number++}`.padStart(10, "0"), 0);
    }
    client.consumeMessages(messages, next);
  };
  next();
}

({ serve, call })[process.argv[2]](Number(process.argv[3]));
