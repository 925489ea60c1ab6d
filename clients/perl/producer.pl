# Puts messages and prints where they went. Usage: producer.pl HOST:PORT QUEUE TOPIC VALUE...
use strict;
use warnings;
use Scalar::Util 'blessed';
use Thrift::BinaryProtocol;
use Thrift::BufferedTransport;
use Thrift::Socket;
use HQueue::HQueueService;
use HQueue::Types;

my ($address, $queue, $topic, @values) = @ARGV;
my ($host, $port) = split /:/, $address;
my $socket = Thrift::Socket->new($host, $port);
$socket->setRecvTimeout(60_000);
my $transport = Thrift::BufferedTransport->new($socket, 8192, 8192);
my $client = HQueue::HQueueServiceClient->new(Thrift::BinaryProtocol->new($transport));

# Strings of bytes go as they are; encode others before.
my @messages = map { HQueue::TMessage->new({topic => $topic, value => $_}) } @values;
eval {
    $transport->open;
    my $put = $client->putMessagesForIds($queue, -1, \@messages);    # -1: a random partition
    print $put->partitionID, ' ', $_->timestamp, ':', $_->sequenceID, "\n" for @{ $put->ids };
    $transport->close;
    1;
} or do {
    my $error = $@;
    die $error unless blessed $error;
    die 'refused (' . $error->code . '): ' . $error->message . "\n" if $error->isa('HQueue::HQueueError');
    die $error->{message} . "\n";
};
