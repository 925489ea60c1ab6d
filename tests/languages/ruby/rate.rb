# How many messages a second go through: rate.rb serve PORT, rate.rb call PORT (see speed/counting.rs).
require "thrift"
require "h_queue_subscriber_service"

$stdout.sync = true

class Counter
  def initialize
    @next = @calls = @printed = 0
  end

  def consumeMessages(messages)
    messages.each do |m|
      number = m.value[0, 10].to_i
      if number == 0
        puts "run"
        @next = @calls = 0
      end
      if number != @next || m.value.bytesize != 1024
        puts "fault message #{number} of #{m.value.bytesize} bytes came where #{@next} was due"
      end
      @next = number + 1
    end
    return 0 if messages.empty?

    @calls += 1
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
    if now - @printed >= 100_000
      @printed = now
      puts "at #{now} #{@next} #{@calls}"
    end
    0
  end
end

def serve(port)
  Thrift::ThreadedServer.new(
    HQueue::HQueueSubscriberService::Processor.new(Counter.new),
    Thrift::ServerSocket.new("127.0.0.1", port),
    Thrift::BufferedTransportFactory.new,
    Thrift::BinaryProtocolFactory.new
  ).serve
end

def call(port)
  transport = Thrift::BufferedTransport.new(Thrift::Socket.new("127.0.0.1", port, 60))
  client = HQueue::HQueueSubscriberService::Client.new(Thrift::BinaryProtocol.new(transport))
  transport.open
  filling = ("x" * 1014).b
  messages = (0...100).map do |n|
    HQueue::TMessage.new(id: HQueue::TMessageID.new(timestamp: 1, sequenceID: n), partitionID: 0, topic: "t".b)
  end
  number = 0
  loop do
    messages.each do |m|
      m.value = number.to_s.rjust(10, "0").b << filling
      number += 1
    end
    client.consumeMessages(messages)
  end
end

ARGV[0] == "serve" ? serve(ARGV[1].to_i) : call(ARGV[1].to_i)
