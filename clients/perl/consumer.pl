# Prints every message that a queue pushes. Usage: consumer.pl [PORT]
use strict;
use warnings;
use Thrift::BinaryProtocol;
use Thrift::BufferedTransport;
use Thrift::Server;
use Thrift::ServerSocket;
use HQueue::HQueueSubscriberService;

package Printer;
use parent -norequire, 'HQueue::HQueueSubscriberServiceIf';

sub new { return bless {}, shift }

sub consumeMessages {
    my ($self, $messages) = @_;
    my $done = eval {
        for my $m (@$messages) {
            # Topic and value are strings of bytes.
            print join("\t", $m->partitionID, $m->id->timestamp . ':' . $m->id->sequenceID, $m->topic, $m->value), "\n";
        }
        1;
    };
    warn $@ unless $done;    # what dies in the handler ends the process that serves the connection
    return $done ? 0 : -1;   # 0: all consumed; k: the first k; -1: failed, try again
}

package main;
binmode STDOUT;
STDOUT->autoflush(1);
my $port = shift // 9500;
# A process for each connection.
Thrift::ForkingServer->new(
    HQueue::HQueueSubscriberServiceProcessor->new(Printer->new),
    Thrift::ServerSocket->new({host => '127.0.0.1', port => $port}),
    Thrift::BufferedTransportFactory->new,
    Thrift::BinaryProtocolFactory->new,
)->serve;
