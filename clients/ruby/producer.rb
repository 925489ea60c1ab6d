# Puts messages and prints where they went. Usage: producer.rb HOST:PORT QUEUE TOPIC VALUE...
require "thrift"
require "h_queue_service"

address, queue, topic, *values = ARGV
host, port = address.split(":")
transport = Thrift::BufferedTransport.new(Thrift::Socket.new(host, port.to_i, 60))
client = HQueue::HQueueService::Client.new(Thrift::BinaryProtocol.new(transport))
messages = values.map { |value| HQueue::TMessage.new(topic: topic.b, value: value.b) }
begin
  transport.open
  put = client.putMessagesForIds(queue.b, -1, messages) # -1: a random partition
  put.ids.each { |id| puts "#{put.partitionID} #{id.timestamp}:#{id.sequenceID}" }
rescue HQueue::HQueueError => refused
  abort "refused (#{refused.code}): #{refused.message}"
rescue Thrift::Exception => failed
  abort failed.message
ensure
  transport.close
end
