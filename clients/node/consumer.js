// Prints every message that a queue pushes. Usage: consumer.js [PORT]
const thrift = require("thrift");
const HQueueSubscriberService = require("./generated/HQueueSubscriberService");

const handler = {
  consumeMessages(messages, result) {
    const lines = [];
    for (const m of messages) {
      // Topic and value are Buffers; the timestamp is an Int64, exact as a Number until far beyond our time.
      lines.push(Buffer.from(`${m.partitionID}\t${Number(m.id.timestamp)}:${m.id.sequenceID}\t`));
      lines.push(m.topic, Buffer.from("\t"), m.value, Buffer.from("\n"));
    }
    process.stdout.write(Buffer.concat(lines));
    result(null, 0); // all consumed; k: the first k; -1, or result(error): failed, try again
  },
};

const server = thrift.createServer(HQueueSubscriberService, handler, {
  transport: thrift.TBufferedTransport,
  protocol: thrift.TBinaryProtocol,
});
// Without this a port probe that resets its connection ends the process.
server.on("error", (error) => console.error(`${error}`));
server.listen(Number(process.argv[2] ?? 9500), "127.0.0.1");
