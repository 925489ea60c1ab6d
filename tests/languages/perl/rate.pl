# How many messages a second go through: rate.pl serve PORT, rate.pl call PORT (see speed/counting.rs).
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
use Thrift::BinaryProtocol;
use Thrift::BufferedTransport;
use Thrift::Server;
use Thrift::ServerSocket;
use Thrift::Socket;
use HQueue::HQueueSubscriberService;
use HQueue::Types;

package Counter;
use parent -norequire, 'HQueue::HQueueSubscriberServiceIf';

sub new { return bless {next => 0, calls => 0, printed => 0}, shift }

sub consumeMessages {
    my ($self, $messages) = @_;
    for my $m (@$messages) {
        my $number = int substr($m->value, 0, 10);
        if ($number == 0) {
            print "run\n";
            $self->{next} = $self->{calls} = 0;
        }
        if ($number != $self->{next} || length $m->value != 1024) {
            print "fault message $number of ", length $m->value, " bytes came where $self->{next} was due\n";
        }
        $self->{next} = $number + 1;
    }
    return 0 unless @$messages;
    $self->{calls}++;
    my $now = int(1e6 * Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC));
    if ($now - $self->{printed} >= 100_000) {
        $self->{printed} = $now;
        print "at $now $self->{next} $self->{calls}\n";
    }
    return 0;
}

package main;
STDOUT->autoflush(1);

sub serve {
    my $port = shift;
    Thrift::ForkingServer->new(
        HQueue::HQueueSubscriberServiceProcessor->new(Counter->new),
        Thrift::ServerSocket->new({host => '127.0.0.1', port => $port}),
        Thrift::BufferedTransportFactory->new,
        Thrift::BinaryProtocolFactory->new,
    )->serve;
}

sub call {
    my $port = shift;
    my $socket = Thrift::Socket->new('127.0.0.1', $port);
    $socket->setRecvTimeout(60_000);
    my $transport = Thrift::BufferedTransport->new($socket, 8192, 8192);
    my $client = HQueue::HQueueSubscriberServiceClient->new(Thrift::BinaryProtocol->new($transport));
    $transport->open;
    my $filling = 'x' x 1014;
    my @messages = map {
        HQueue::TMessage->new({id => HQueue::TMessageID->new({timestamp => 1, sequenceID => $_}), partitionID => 0, topic => 't'})
    } 0 .. 99;
    my $number = 0;
    while (1) {
        $_->value(sprintf('%010d', $number++) . $filling) for @messages;
        $client->consumeMessages(\@messages);
    }
}

my ($what, $port) = @ARGV;
$what eq 'serve' ? serve($port) : call($port);
