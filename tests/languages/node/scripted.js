// A consumer that answers as it is told: scripted.js PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs).
const thrift = require("thrift");
const HQueueSubscriberService = require("./generated/HQueueSubscriberService");

const [port, kind, transport, protocol, script] = process.argv.slice(2);
const answers = script.split(",").filter((answer) => answer !== "-");

async function consume(messages) {
  if (messages.length === 0) {
    return 0;
  }
  const lines = [`call ${messages.length}\n`];
  for (const m of messages) {
    const id = `${Number(m.id.timestamp)}:${m.id.sequenceID}`;
    lines.push(`${m.partitionID} ${id} ${m.topic.toString("hex")} ${m.value.toString("hex")}\n`);
  }
  const answer = answers.shift() ?? "0";
  lines.push(`answer ${answer}\n`);
  await new Promise((written) => process.stdout.write(lines.join(""), written));
  if (answer === "throw") {
    throw new Error("the handler fails");
  }
  if (answer === "die") {
    process.exit(1);
  }
  if (answer.startsWith("sleep:")) {
    await new Promise((over) => setTimeout(over, Number(answer.slice(6))));
    return 0;
  }
  return Number(answer);
}

// Of the kind `thrown` it throws at the server, in place of telling the callback.
function consumeMessages(messages, result) {
  if (kind === "thrown" && messages.length > 0 && answers[0] === "throw") {
    consume(messages).catch(() => {});
    throw new Error("the handler fails");
  }
  consume(messages).then((value) => result(null, value), result);
}

const server = thrift.createServer(
  HQueueSubscriberService,
  { consumeMessages },
  {
    transport: transport === "framed" ? thrift.TFramedTransport : thrift.TBufferedTransport,
    protocol: protocol === "compact" ? thrift.TCompactProtocol : thrift.TBinaryProtocol,
  },
);
server.on("error", (error) => console.error(`${error}`));
server.listen(Number(port), "127.0.0.1");
