# Every call of the gateway: gateway.pl PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs).
use strict;
use warnings;
use Scalar::Util 'blessed';
use Thrift::BinaryProtocol;
use Thrift::BufferedTransport;
use Thrift::FramedTransport;
use Thrift::Socket;
use HQueue::HQueueService;
use HQueue::Types;

my ($port, $transport, undef, $queue) = @ARGV;
my $socket = Thrift::Socket->new('127.0.0.1', $port);
$socket->setRecvTimeout(60_000);
$transport = $transport eq 'framed' ? Thrift::FramedTransport->new($socket) : Thrift::BufferedTransport->new($socket, 8192, 8192);
my $client = HQueue::HQueueServiceClient->new(Thrift::BinaryProtocol->new($transport));
$transport->open;

sub message {
    my ($topic, $value, $partition) = @_;
    return HQueue::TMessage->new({topic => $topic, value => $value, partitionID => $partition});
}

sub show {
    my ($scanner, @messages) = @_;
    for my $m (@messages) {
        print join(' ', $scanner, $m->id->timestamp . ':' . $m->id->sequenceID, unpack('H*', $m->topic), unpack('H*', $m->value)), "\n";
    }
    return;
}

sub refused {
    my ($what, $call) = @_;
    if (eval { $call->(); 1 }) {
        print "accepted $what\n";
    } else {
        my $error = $@;
        die $error unless blessed $error && $error->isa('HQueue::HQueueError');
        print join(' ', 'refused', $what, $error->code, $error->message), "\n";
    }
    return;
}

$client->putMessage($queue, message('one', pack('C*', 0 .. 255)));
$client->putMessage($queue, message("\xff\0", 'own', 2));
$client->putMessages($queue, [message('many', ''), message('many', 'x'), message('many', "\xc3\x28")]);
$client->putMessageWithPid($queue, 1, message('with', "d\xc3\xa9j\xc3\xa0 vu"));
$client->putMessagesWithPid($queue, 0, [map { message($_ % 2 ? 'odd' : 'even', "$_") } 0 .. 249]);

my $single = $client->messageScannerOpen($queue, 0, HQueue::TMessageScan->new({topics => ['odd', 'even']}));
my @all;
while (defined((my $m = $client->messageScannerGet($single))->id)) {
    push @all, $m;
}
my $lists = $client->messageScannerOpen($queue, 0, HQueue::TMessageScan->new({topics => ['even', 'odd']}));
my $some = HQueue::TMessageScan->new({startID => $all[100]->id, stopID => $all[200]->id, topics => ['odd']});
my $part = $client->messageScannerOpen($queue, 0, $some);
show('single', @all);
while (my @got = @{ $client->messageScannerGetList($lists, 100) }) {
    show('lists', @got);
}
show('part', @{ $client->messageScannerGetList($part, 1000) });
$client->messageScannerClose($_) for $single, $lists, $part;
print "location $_\n" for @{ $client->getQueueLocations($queue) };

my $m = message('t', 'v');
my $nothing = HQueue::TMessageScan->new;
refused('no-queue', sub { $client->putMessage('no-such-queue', $m) });
refused('slash', sub { $client->putMessages('a/b', [$m]) });
refused('empty-name', sub { $client->getQueueLocations('') });
refused('bytes-name', sub { $client->messageScannerOpen("\xff\0", 0, $nothing) });
refused('partition', sub { $client->putMessageWithPid($queue, 99, $m) });
refused('long-topic', sub { $client->putMessage($queue, message('t' x 256, 'v')) });
refused('empty-topic', sub { $client->putMessagesWithPid($queue, 0, [message('', 'v')]) });
refused('large', sub { $client->putMessage($queue, message('t', "\0" x 4194305)) });
refused('closed', sub { $client->messageScannerGet($single) });
refused('count', sub { $client->messageScannerGetList($client->messageScannerOpen($queue, 0, $nothing), 0) });
