// Prints every message that a queue pushes. Usage: consumer [PORT]
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/apache/thrift/lib/go/thrift"

	"hqueue-client/hqueue"
)

type printer struct{}

func (printer) ConsumeMessages(ctx context.Context, messages []*hqueue.TMessage) (int32, error) {
	out := bufio.NewWriter(os.Stdout)
	for _, m := range messages {
		// Topic and Value are []byte; an empty one may be nil.
		fmt.Fprintf(out, "%d\t%d:%d\t%s\t%s\n", m.GetPartitionID(), m.ID.Timestamp, m.ID.SequenceID, m.Topic, m.Value)
	}
	// 0: all consumed; k: the first k; -1: failed, try again; an error: the same, with your reason in the broker's status
	return 0, out.Flush()
}

func main() {
	port := "9500"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	socket, err := thrift.NewTServerSocket("127.0.0.1:" + port)
	if err != nil {
		log.Fatal(err)
	}
	server := thrift.NewTSimpleServer4(
		hqueue.NewHQueueSubscriberServiceProcessor(printer{}),
		socket,
		thrift.NewTBufferedTransportFactory(8192),
		thrift.NewTBinaryProtocolFactoryConf(nil),
	)
	log.Fatal(server.Serve())
}
