<?php
// Puts messages and prints where they went. Usage: producer.php HOST:PORT QUEUE TOPIC VALUE...
require __DIR__ . '/autoload.php';

[, $address, $queue, $topic] = $argv;
[$host, $port] = explode(':', $address);
$socket = new Thrift\Transport\TSocket($host, (int) $port);
$socket->setSendTimeout(10_000); // the library's own are 0.1 s
$socket->setRecvTimeout(60_000); // and 0.75 s
$transport = new Thrift\Transport\TBufferedTransport($socket, 8192, 8192);
$client = new HQueue\HQueueServiceClient(new Thrift\Protocol\TBinaryProtocol($transport));

$messages = [];
foreach (array_slice($argv, 4) as $value) {
    $messages[] = new HQueue\TMessage(['topic' => $topic, 'value' => $value]);
}
try {
    $transport->open();
    $put = $client->putMessagesForIds($queue, -1, $messages); // -1: a random partition
    foreach ($put->ids as $id) {
        echo "$put->partitionID $id->timestamp:$id->sequenceID\n";
    }
    $transport->close();
} catch (HQueue\HQueueError $refused) {
    // getMessage() is PHP's own and may be empty
    fwrite(STDERR, "refused ($refused->code): $refused->message\n");
    exit(1);
} catch (Thrift\Exception\TException $failed) {
    fwrite(STDERR, $failed->getMessage() . "\n");
    exit(1);
}
