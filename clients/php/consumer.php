<?php
// Prints every message that a queue pushes. Usage: consumer.php [PORT]
require __DIR__ . '/autoload.php';

class Printer implements HQueue\HQueueSubscriberServiceIf
{
    public function consumeMessages(array $messages)
    {
        try {
            foreach ($messages as $m) {
                // Topic and value are strings of bytes.
                printf("%d\t%d:%d\t%s\t%s\n", $m->partitionID, $m->id->timestamp, $m->id->sequenceID, $m->topic, $m->value);
            }
            return 0; // all consumed; k: the first k
        } catch (Throwable $error) { // an exception that leaves the handler ends the process
            error_log($error);
            return -1; // failed, try again
        }
    }
}

class PatientSocket extends Thrift\Server\TServerSocket
{
    protected function acceptImpl()
    {
        // By default the server leaves a connection after 0.75 s without a call, and does not close it.
        $socket = parent::acceptImpl();
        $socket?->setRecvTimeout(1_000_000_000);
        return $socket;
    }
}

class Buffered extends Thrift\Factory\TTransportFactory
{
    public static function getTransport(Thrift\Transport\TTransport $transport)
    {
        return new Thrift\Transport\TBufferedTransport($transport, 8192, 8192);
    }
}

$transports = new Buffered();
$protocols = new Thrift\Factory\TBinaryProtocolFactory();
$socket = new PatientSocket('127.0.0.1', (int) ($argv[1] ?? 9500));
$processor = new HQueue\HQueueSubscriberServiceProcessor(new Printer());
(new Thrift\Server\TSimpleServer($processor, $socket, $transports, $transports, $protocols, $protocols))->serve();
