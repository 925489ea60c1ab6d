<?php
// How many messages a second go through: rate.php serve PORT, rate.php call PORT (see speed/counting.rs).
require getenv('CLIENT') . '/autoload.php';

use HQueue\TMessage;
use HQueue\TMessageID;
use Thrift\Transport\TBufferedTransport;

class Counter implements HQueue\HQueueSubscriberServiceIf
{
    private int $next = 0;
    private int $calls = 0;
    private int $printed = 0;

    public function consumeMessages(array $messages)
    {
        foreach ($messages as $m) {
            $number = (int) substr($m->value, 0, 10);
            if ($number === 0) {
                echo "run\n";
                $this->next = $this->calls = 0;
            }
            if ($number !== $this->next || strlen($m->value) !== 1024) {
                echo "fault message $number of ", strlen($m->value), " bytes came where $this->next was due\n";
            }
            $this->next = $number + 1;
        }
        $this->calls += $messages ? 1 : 0;
        $now = intdiv(hrtime(true), 1000);
        if ($messages && $now - $this->printed >= 100_000) {
            $this->printed = $now;
            echo "at $now $this->next $this->calls\n";
        }
        return 0;
    }
}

class PatientSocket extends Thrift\Server\TServerSocket
{
    protected function acceptImpl()
    {
        $socket = parent::acceptImpl();
        $socket?->setRecvTimeout(1_000_000_000);
        return $socket;
    }
}

class Buffered extends Thrift\Factory\TTransportFactory
{
    public static function getTransport(Thrift\Transport\TTransport $transport)
    {
        return new TBufferedTransport($transport, 8192, 8192);
    }
}

function serve(int $port): void
{
    [$transports, $protocols] = [new Buffered(), new Thrift\Factory\TBinaryProtocolFactory()];
    $processor = new HQueue\HQueueSubscriberServiceProcessor(new Counter());
    $socket = new PatientSocket('127.0.0.1', $port);
    (new Thrift\Server\TSimpleServer($processor, $socket, $transports, $transports, $protocols, $protocols))->serve();
}

function call(int $port): void
{
    $socket = new Thrift\Transport\TSocket('127.0.0.1', $port);
    $socket->setSendTimeout(10_000);
    $socket->setRecvTimeout(60_000);
    $transport = new TBufferedTransport($socket, 8192, 8192);
    $client = new HQueue\HQueueSubscriberServiceClient(new Thrift\Protocol\TBinaryProtocol($transport));
    $transport->open();
    $message = fn (int $n) => new TMessage(
        ['id' => new TMessageID(['timestamp' => 1, 'sequenceID' => $n]), 'partitionID' => 0, 'topic' => 't'],
    );
    $messages = array_map($message, range(0, 99));
    $filling = str_repeat('x', 1014);
    for ($number = 0;;) {
        foreach ($messages as $m) {
            $m->value = str_pad((string) $number++, 10, '0', STR_PAD_LEFT) . $filling;
        }
        $client->consumeMessages($messages);
    }
}

[, $what, $port] = $argv;
$what((int) $port);
