<?php
// A consumer that answers as it is told: scripted.php PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs).
require getenv('CLIENT') . '/autoload.php';

use Thrift\Transport\TTransport;

[, $port, $kind, $transport, $protocol, $script] = $argv;
$answers = $script === '-' ? [] : explode(',', $script);

class Scripted implements HQueue\HQueueSubscriberServiceIf
{
    public function consumeMessages(array $messages)
    {
        global $answers;
        if (!$messages) {
            return 0;
        }
        $out = 'call ' . count($messages) . "\n";
        foreach ($messages as $m) {
            $out .= "$m->partitionID {$m->id->timestamp}:{$m->id->sequenceID} " . bin2hex($m->topic) . ' ' . bin2hex($m->value) . "\n";
        }
        $answer = array_shift($answers) ?? '0';
        fwrite(STDOUT, "{$out}answer $answer\n");
        if ($answer === 'throw') {
            throw new RuntimeException('the handler fails');
        }
        if ($answer === 'die') {
            exit(1);
        }
        if (str_starts_with($answer, 'sleep:')) {
            usleep(1000 * (int) substr($answer, 6));
            return 0;
        }
        return (int) $answer;
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
    public static function getTransport(TTransport $transport)
    {
        return new Thrift\Transport\TBufferedTransport($transport, 8192, 8192);
    }
}

class Framed extends Thrift\Factory\TTransportFactory
{
    public static function getTransport(TTransport $transport)
    {
        return new Thrift\Transport\TFramedTransport($transport);
    }
}

$transports = $transport === 'framed' ? new Framed() : new Buffered();
$protocols = $protocol === 'compact' ? new Thrift\Factory\TCompactProtocolFactory() : new Thrift\Factory\TBinaryProtocolFactory();
// simple: as the example in clients; stock, forking: with the timeouts of the library.
$class = $kind === 'simple' ? PatientSocket::class : Thrift\Server\TServerSocket::class;
$socket = new $class('127.0.0.1', (int) $port);
$server = $kind === 'forking' ? Thrift\Server\TForkingServer::class : Thrift\Server\TSimpleServer::class;
$processor = new HQueue\HQueueSubscriberServiceProcessor(new Scripted());
(new $server($processor, $socket, $transports, $transports, $protocols, $protocols))->serve();
