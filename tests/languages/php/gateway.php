<?php
// Every call of the gateway: gateway.php PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs).
require getenv('CLIENT') . '/autoload.php';

use HQueue\TMessage;
use HQueue\TMessageScan;

[, $port, $transport, $protocol, $queue] = $argv;
$socket = new Thrift\Transport\TSocket('127.0.0.1', (int) $port);
$socket->setSendTimeout(10_000);
$socket->setRecvTimeout(60_000);
$transport = $transport === 'framed'
    ? new Thrift\Transport\TFramedTransport($socket)
    : new Thrift\Transport\TBufferedTransport($socket, 8192, 8192);
$protocol = $protocol === 'compact'
    ? new Thrift\Protocol\TCompactProtocol($transport)
    : new Thrift\Protocol\TBinaryProtocol($transport);
$client = new HQueue\HQueueServiceClient($protocol);
$transport->open();

function message(string $topic, string $value, ?int $partition = null): TMessage
{
    return new TMessage(['topic' => $topic, 'value' => $value, 'partitionID' => $partition]);
}

function show(string $scanner, array $messages): void
{
    foreach ($messages as $m) {
        echo "$scanner {$m->id->timestamp}:{$m->id->sequenceID} ", bin2hex($m->topic), ' ', bin2hex($m->value), "\n";
    }
}

function refused(string $what, callable $call): void
{
    try {
        $call();
        echo "accepted $what\n";
    } catch (HQueue\HQueueError $error) {
        echo "refused $what $error->code $error->message\n";
    }
}

$client->putMessage($queue, message('one', implode('', array_map('chr', range(0, 255)))));
$client->putMessage($queue, message("\xff\0", 'own', 2));
$client->putMessages($queue, [message('many', ''), message('many', 'x'), message('many', "\xc3\x28")]);
$client->putMessageWithPid($queue, 1, message('with', "d\u{e9}j\u{e0} vu"));
$numbers = array_map(fn (int $n) => message($n % 2 ? 'odd' : 'even', (string) $n), range(0, 249));
$client->putMessagesWithPid($queue, 0, $numbers);

$single = $client->messageScannerOpen($queue, 0, new TMessageScan(['topics' => ['odd', 'even']]));
$all = [];
while (($m = $client->messageScannerGet($single))->id !== null) {
    $all[] = $m;
}
$lists = $client->messageScannerOpen($queue, 0, new TMessageScan(['topics' => ['even', 'odd']]));
$some = new TMessageScan(['startID' => $all[100]->id, 'stopID' => $all[200]->id, 'topics' => ['odd']]);
$part = $client->messageScannerOpen($queue, 0, $some);
show('single', $all);
while ($got = $client->messageScannerGetList($lists, 100)) {
    show('lists', $got);
}
show('part', $client->messageScannerGetList($part, 1000));
foreach ([$single, $lists, $part] as $scanner) {
    $client->messageScannerClose($scanner);
}
foreach ($client->getQueueLocations($queue) as $location) {
    echo "location $location\n";
}

$m = message('t', 'v');
$nothing = new TMessageScan();
refused('no-queue', fn () => $client->putMessage('no-such-queue', $m));
refused('slash', fn () => $client->putMessages('a/b', [$m]));
refused('empty-name', fn () => $client->getQueueLocations(''));
refused('bytes-name', fn () => $client->messageScannerOpen("\xff\0", 0, $nothing));
refused('partition', fn () => $client->putMessageWithPid($queue, 99, $m));
refused('long-topic', fn () => $client->putMessage($queue, message(str_repeat('t', 256), 'v')));
refused('empty-topic', fn () => $client->putMessagesWithPid($queue, 0, [message('', 'v')]));
refused('large', fn () => $client->putMessage($queue, message('t', str_repeat("\0", 4194305))));
refused('closed', fn () => $client->messageScannerGet($single));
refused('count', fn () => $client->messageScannerGetList($client->messageScannerOpen($queue, 0, $nothing), 0));
