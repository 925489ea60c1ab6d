# A consumer that answers as it is told: scripted.pl PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs).
use strict;
use warnings;
use POSIX ();
use Time::HiRes ();
use Thrift::BinaryProtocol;
use Thrift::BufferedTransport;
use Thrift::Exception;
use Thrift::FramedTransport;
use Thrift::Server;
use Thrift::ServerSocket;
use HQueue::HQueueSubscriberService;

my ($port, $kind, $transport, undef, $script) = @ARGV;
our @answers = grep { $_ ne '-' } split /,/, $script;

package Scripted;
use parent -norequire, 'HQueue::HQueueSubscriberServiceIf';

sub new { return bless {}, shift }

sub consumeMessages {
    my ($self, $messages) = @_;
    return 0 unless @$messages;
    my $out = 'call ' . @$messages . "\n";
    for my $m (@$messages) {
        my $id = $m->id->timestamp . ':' . $m->id->sequenceID;
        $out .= join(' ', $m->partitionID, $id, unpack('H*', $m->topic), unpack('H*', $m->value)) . "\n";
    }
    my $answer = shift(@main::answers) // '0';
    print $out, "answer $answer\n";
    die Thrift::TException->new('the handler fails') if $answer eq 'throw' && $kind ne 'plain';
    die "the handler fails\n" if $answer eq 'throw';
    POSIX::_exit(1) if $answer eq 'die';
    if ($answer =~ /^sleep:(\d+)/) {
        Time::HiRes::usleep(1000 * $1);
        return 0;
    }
    return $answer;
}

package main;
binmode STDOUT;
STDOUT->autoflush(1);
# simple and forking throw an exception of the library, plain is simple with a die of a string.
my $class = $kind eq 'forking' ? 'Thrift::ForkingServer' : 'Thrift::SimpleServer';
my $transports = $transport eq 'framed' ? Thrift::FramedTransportFactory->new : Thrift::BufferedTransportFactory->new;
$class->new(
    HQueue::HQueueSubscriberServiceProcessor->new(Scripted->new),
    Thrift::ServerSocket->new({host => '127.0.0.1', port => $port}),
    $transports,
    Thrift::BinaryProtocolFactory->new,
)->serve;
