# A consumer that answers as it is told: scripted.rb PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs).
require "thrift"
require "h_queue_subscriber_service"

port, kind, transport, protocol, script = ARGV
ANSWERS = script.split(",") - ["-"]

class Scripted
  def initialize
    @lock = Mutex.new
  end

  def consumeMessages(messages)
    return 0 if messages.empty?

    @lock.synchronize { answer(messages) }
  end

  def answer(messages)
    out = +"call #{messages.size}\n"
    messages.each do |m|
      id = "#{m.id.timestamp}:#{m.id.sequenceID}"
      out << "#{m.partitionID} #{id} #{m.topic.unpack1('H*')} #{m.value.unpack1('H*')}\n"
    end
    answer = ANSWERS.shift || "0"
    $stdout.write(out, "answer #{answer}\n")
    $stdout.flush
    case answer
    when "throw" then raise "the handler fails"
    when "die" then exit!(1)
    when /^sleep:(\d+)/
      sleep($1.to_i / 1000.0)
      0
    else answer.to_i
    end
  end
end

processor = HQueue::HQueueSubscriberService::Processor.new(Scripted.new)
socket = Thrift::ServerSocket.new("127.0.0.1", port.to_i)
transports = transport == "framed" ? Thrift::FramedTransportFactory.new : Thrift::BufferedTransportFactory.new
protocols = protocol == "compact" ? Thrift::CompactProtocolFactory.new : Thrift::BinaryProtocolFactory.new
server = {
  "threaded" => Thrift::ThreadedServer,
  "pool" => Thrift::ThreadPoolServer,
  "simple" => Thrift::SimpleServer,
  "nonblocking" => Thrift::NonblockingServer
}.fetch(kind)
server.new(processor, socket, transports, protocols).serve
