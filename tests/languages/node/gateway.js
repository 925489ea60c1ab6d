// Every call of the gateway: gateway.js PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs).
const { promisify } = require("util");
const thrift = require("thrift");
const HQueueService = require("./generated/HQueueService");
const { HQueueError, TMessage, TMessageScan } = require("./generated/hqueue_types");

const message = (topic, value) => new TMessage({ topic: Buffer.from(topic), value: Buffer.from(value) });
const topics = (...names) => new TMessageScan({ topics: names.map((name) => Buffer.from(name)) });

function show(scanner, messages) {
  for (const m of messages) {
    const id = `${Number(m.id.timestamp)}:${m.id.sequenceID}`;
    console.log(`${scanner} ${id} ${m.topic.toString("hex")} ${m.value.toString("hex")}`);
  }
}

async function refused(what, call) {
  try {
    await call();
    console.log(`accepted ${what}`);
  } catch (error) {
    if (!(error instanceof HQueueError)) {
      throw error;
    }
    console.log(`refused ${what} ${error.code} ${error.message}`);
  }
}

async function main([port, transport, protocol, name]) {
  const connection = thrift.createConnection("127.0.0.1", Number(port), {
    transport: transport === "framed" ? thrift.TFramedTransport : thrift.TBufferedTransport,
    protocol: protocol === "compact" ? thrift.TCompactProtocol : thrift.TBinaryProtocol,
  });
  connection.on("error", (error) => {
    throw error;
  });
  const callbacks = thrift.createClient(HQueueService, connection);
  const client = new Proxy(callbacks, { get: (target, method) => promisify(target[method]).bind(target) });
  const queue = Buffer.from(name);

  await client.putMessage(queue, message("one", Uint8Array.from({ length: 256 }, (_, n) => n)));
  const own = message([0xff, 0], "own");
  own.partitionID = 2;
  await client.putMessage(queue, own);
  await client.putMessages(queue, [message("many", ""), message("many", "x"), message("many", [0xc3, 0x28])]);
  await client.putMessageWithPid(queue, 1, message("with", "d\u00e9j\u00e0 vu"));
  const numbers = Array.from({ length: 250 }, (_, n) => message(n % 2 ? "odd" : "even", `${n}`));
  await client.putMessagesWithPid(queue, 0, numbers);

  const single = await client.messageScannerOpen(queue, 0, topics("odd", "even"));
  const all = [];
  for (let m = await client.messageScannerGet(single); m.id !== null; m = await client.messageScannerGet(single)) {
    all.push(m);
  }
  const lists = await client.messageScannerOpen(queue, 0, topics("even", "odd"));
  const some = topics("odd");
  some.startID = all[100].id;
  some.stopID = all[200].id;
  const part = await client.messageScannerOpen(queue, 0, some);
  show("single", all);
  for (let got; (got = await client.messageScannerGetList(lists, 100)).length > 0; ) {
    show("lists", got);
  }
  show("part", await client.messageScannerGetList(part, 1000));
  for (const scanner of [single, lists, part]) {
    await client.messageScannerClose(scanner);
  }
  for (const location of await client.getQueueLocations(queue)) {
    console.log(`location ${location}`);
  }

  const m = message("t", "v");
  const nothing = new TMessageScan();
  await refused("no-queue", () => client.putMessage(Buffer.from("no-such-queue"), m));
  await refused("slash", () => client.putMessages(Buffer.from("a/b"), [m]));
  await refused("empty-name", () => client.getQueueLocations(Buffer.from("")));
  await refused("bytes-name", () => client.messageScannerOpen(Buffer.from([0xff, 0]), 0, nothing));
  await refused("partition", () => client.putMessageWithPid(queue, 99, m));
  await refused("long-topic", () => client.putMessage(queue, message("t".repeat(256), "v")));
  await refused("empty-topic", () => client.putMessagesWithPid(queue, 0, [message("", "v")]));
  await refused("large", () => client.putMessage(queue, message("t", Buffer.alloc(4194305))));
  await refused("closed", () => client.messageScannerGet(single));
  const open = await client.messageScannerOpen(queue, 0, nothing);
  await refused("count", () => client.messageScannerGetList(open, 0));
  connection.end();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
