# Every call of the gateway: gateway.rb PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs).
require "thrift"
require "h_queue_service"

include HQueue

port, transport, protocol, queue = ARGV
socket = Thrift::Socket.new("127.0.0.1", port.to_i, 60)
transport = (transport == "framed" ? Thrift::FramedTransport : Thrift::BufferedTransport).new(socket)
protocol = (protocol == "compact" ? Thrift::CompactProtocol : Thrift::BinaryProtocol).new(transport)
client = HQueueService::Client.new(protocol)
transport.open

def message(topic, value)
  TMessage.new(topic: topic.b, value: value.b)
end

def show(scanner, messages)
  messages.each do |m|
    puts "#{scanner} #{m.id.timestamp}:#{m.id.sequenceID} #{m.topic.unpack1('H*')} #{m.value.unpack1('H*')}"
  end
end

def refused(what)
  yield
  puts "accepted #{what}"
rescue HQueueError => error
  puts "refused #{what} #{error.code} #{error.message}"
end

client.putMessage(queue, message("one", (0..255).to_a.pack("C*")))
own = message("\xff\0", "own")
own.partitionID = 2
client.putMessage(queue, own)
client.putMessages(queue, [message("many", ""), message("many", "x"), message("many", "\xc3\x28")])
client.putMessageWithPid(queue, 1, message("with", "d\u00e9j\u00e0 vu"))
client.putMessagesWithPid(queue, 0, (0...250).map { |n| message(n.odd? ? "odd" : "even", n.to_s) })

single = client.messageScannerOpen(queue, 0, TMessageScan.new(topics: %w[odd even]))
all = []
while (m = client.messageScannerGet(single)).id
  all << m
end
lists = client.messageScannerOpen(queue, 0, TMessageScan.new(topics: %w[even odd]))
some = TMessageScan.new(startID: all[100].id, stopID: all[200].id, topics: ["odd"])
part = client.messageScannerOpen(queue, 0, some)
show("single", all)
until (got = client.messageScannerGetList(lists, 100)).empty?
  show("lists", got)
end
show("part", client.messageScannerGetList(part, 1000))
[single, lists, part].each { |scanner| client.messageScannerClose(scanner) }
client.getQueueLocations(queue).each { |location| puts "location #{location}" }

m = message("t", "v")
nothing = TMessageScan.new
refused("no-queue") { client.putMessage("no-such-queue", m) }
refused("slash") { client.putMessages("a/b", [m]) }
refused("empty-name") { client.getQueueLocations("") }
refused("bytes-name") { client.messageScannerOpen("\xff\0".b, 0, nothing) }
refused("partition") { client.putMessageWithPid(queue, 99, m) }
refused("long-topic") { client.putMessage(queue, message("t" * 256, "v")) }
refused("empty-topic") { client.putMessagesWithPid(queue, 0, [message("", "v")]) }
refused("large") { client.putMessage(queue, message("t", "\0" * 4_194_305)) }
refused("closed") { client.messageScannerGet(single) }
refused("count") { client.messageScannerGetList(client.messageScannerOpen(queue, 0, nothing), 0) }
