// Puts messages and prints where they went. Usage: producer.js HOST:PORT QUEUE TOPIC VALUE...
const { promisify } = require("util");
const thrift = require("thrift");
const HQueueService = require("./generated/HQueueService");
const { HQueueError, TMessage } = require("./generated/hqueue_types");

async function main([address, queue, topic, ...values]) {
  const [host, port] = address.split(":");
  const connection = thrift.createConnection(host, Number(port), {
    transport: thrift.TBufferedTransport,
    protocol: thrift.TBinaryProtocol,
  });
  const failed = new Promise((_, reject) => connection.on("error", reject));
  const client = thrift.createClient(HQueueService, connection);
  const putMessagesForIds = promisify(client.putMessagesForIds).bind(client);
  const messages = values.map((value) => new TMessage({ topic: Buffer.from(topic), value: Buffer.from(value) }));
  try {
    // -1: a random partition
    const put = await Promise.race([putMessagesForIds(Buffer.from(queue), -1, messages), failed]);
    for (const id of put.ids) {
      console.log(`${put.partitionID} ${Number(id.timestamp)}:${id.sequenceID}`);
    }
  } finally {
    connection.end();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error instanceof HQueueError ? `refused (${error.code}): ${error.message}` : `${error}`);
  process.exitCode = 1;
});
