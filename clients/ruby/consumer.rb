# Prints every message that a queue pushes. Usage: consumer.rb [PORT]
require "thrift"
require "h_queue_subscriber_service"

class Printer
  def consumeMessages(messages)
    messages.each do |m|
      # Topic and value are strings of bytes (ASCII-8BIT).
      $stdout.write("#{m.partitionID}\t#{m.id.timestamp}:#{m.id.sequenceID}\t".b, m.topic, "\t", m.value, "\n")
    end
    $stdout.flush
    0 # all consumed; k: the first k; -1: failed, try again
  end
end

port = (ARGV[0] || 9500).to_i
server = Thrift::ThreadedServer.new(
  HQueue::HQueueSubscriberService::Processor.new(Printer.new),
  Thrift::ServerSocket.new("127.0.0.1", port),
  Thrift::BufferedTransportFactory.new,
  Thrift::BinaryProtocolFactory.new
)
server.serve
