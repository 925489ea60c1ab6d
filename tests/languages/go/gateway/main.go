// Every call of the gateway: gateway PORT TRANSPORT PROTOCOL QUEUE (what it prints: harness/gateway.rs).
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/apache/thrift/lib/go/thrift"

	"hqueue-client/hqueue"
)

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func done(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func message(topic, value string) *hqueue.TMessage {
	return &hqueue.TMessage{Topic: []byte(topic), Value: []byte(value)}
}

func show(scanner string, messages ...*hqueue.TMessage) {
	for _, m := range messages {
		fmt.Printf("%s %d:%d %x %x\n", scanner, m.ID.Timestamp, m.ID.SequenceID, m.Topic, m.Value)
	}
}

func refused(what string, err error) {
	var refusal *hqueue.HQueueError
	switch {
	case errors.As(err, &refusal):
		fmt.Println("refused", what, refusal.Code, refusal.Message)
	case err == nil:
		fmt.Println("accepted", what)
	default:
		log.Fatal(err)
	}
}

func topics(names ...string) *hqueue.TMessageScan {
	scan := &hqueue.TMessageScan{}
	for _, name := range names {
		scan.Topics = append(scan.Topics, []byte(name))
	}
	return scan
}

func main() {
	var transport thrift.TTransport = thrift.NewTSocketConf("127.0.0.1:"+os.Args[1], nil)
	if os.Args[2] == "framed" {
		transport = thrift.NewTFramedTransportConf(transport, nil)
	} else {
		transport = thrift.NewTBufferedTransport(transport, 8192)
	}
	done(transport.Open())
	var protocols thrift.TProtocolFactory = thrift.NewTBinaryProtocolFactoryConf(nil)
	if os.Args[3] == "compact" {
		protocols = thrift.NewTCompactProtocolFactoryConf(nil)
	}
	client := hqueue.NewHQueueServiceClientFactory(transport, protocols)
	queue := []byte(os.Args[4])

	every := make([]byte, 256)
	for n := range every {
		every[n] = byte(n)
	}
	done(client.PutMessage(ctx, queue, &hqueue.TMessage{Topic: []byte("one"), Value: every}))
	own := message("\xff\x00", "own")
	own.PartitionID = thrift.Int16Ptr(2)
	done(client.PutMessage(ctx, queue, own))
	// nil is an empty value.
	empty := &hqueue.TMessage{Topic: []byte("many")}
	done(client.PutMessages(ctx, queue, []*hqueue.TMessage{empty, message("many", "x"), message("many", "\xc3\x28")}))
	done(client.PutMessageWithPid(ctx, queue, 1, message("with", "d\u00e9j\u00e0 vu")))
	var numbers []*hqueue.TMessage
	for n := range 250 {
		numbers = append(numbers, message([]string{"even", "odd"}[n%2], strconv.Itoa(n)))
	}
	done(client.PutMessagesWithPid(ctx, queue, 0, numbers))

	single := must(client.MessageScannerOpen(ctx, queue, 0, topics("odd", "even")))
	var all []*hqueue.TMessage
	for m := must(client.MessageScannerGet(ctx, single)); m.IsSetID(); m = must(client.MessageScannerGet(ctx, single)) {
		all = append(all, m)
	}
	lists := must(client.MessageScannerOpen(ctx, queue, 0, topics("even", "odd")))
	some := topics("odd")
	some.StartID, some.StopID = all[100].ID, all[200].ID
	part := must(client.MessageScannerOpen(ctx, queue, 0, some))
	show("single", all...)
	for got := must(client.MessageScannerGetList(ctx, lists, 100)); len(got) > 0; got = must(client.MessageScannerGetList(ctx, lists, 100)) {
		show("lists", got...)
	}
	show("part", must(client.MessageScannerGetList(ctx, part, 1000))...)
	for _, scanner := range []hqueue.ScannerID{single, lists, part} {
		done(client.MessageScannerClose(ctx, scanner))
	}
	for _, location := range must(client.GetQueueLocations(ctx, queue)) {
		fmt.Println("location", string(location))
	}

	m := message("t", "v")
	one := []*hqueue.TMessage{m}
	refused("no-queue", client.PutMessage(ctx, []byte("no-such-queue"), m))
	refused("slash", client.PutMessages(ctx, []byte("a/b"), one))
	_, err := client.GetQueueLocations(ctx, nil)
	refused("empty-name", err)
	_, err = client.MessageScannerOpen(ctx, []byte("\xff\x00"), 0, &hqueue.TMessageScan{})
	refused("bytes-name", err)
	refused("partition", client.PutMessageWithPid(ctx, queue, 99, m))
	refused("long-topic", client.PutMessage(ctx, queue, message(strings.Repeat("t", 256), "v")))
	refused("empty-topic", client.PutMessagesWithPid(ctx, queue, 0, []*hqueue.TMessage{message("", "v")}))
	refused("large", client.PutMessage(ctx, queue, message("t", strings.Repeat("\x00", 4194305))))
	_, err = client.MessageScannerGet(ctx, single)
	refused("closed", err)
	_, err = client.MessageScannerGetList(ctx, must(client.MessageScannerOpen(ctx, queue, 0, &hqueue.TMessageScan{})), 0)
	refused("count", err)
}
