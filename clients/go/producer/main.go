// Puts messages and prints where they went. Usage: producer HOST:PORT QUEUE TOPIC VALUE...
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/apache/thrift/lib/go/thrift"

	"hqueue-client/hqueue"
)

func main() {
	log.SetFlags(0)
	address, queue, topic, values := os.Args[1], os.Args[2], os.Args[3], os.Args[4:]
	socket := thrift.NewTSocketConf(address, nil)
	transport := thrift.NewTBufferedTransport(socket, 8192)
	if err := transport.Open(); err != nil {
		log.Fatal(err)
	}
	defer transport.Close()
	client := hqueue.NewHQueueServiceClientFactory(transport, thrift.NewTBinaryProtocolFactoryConf(nil))

	var messages []*hqueue.TMessage
	for _, value := range values {
		messages = append(messages, &hqueue.TMessage{Topic: []byte(topic), Value: []byte(value)})
	}
	// -1: a random partition
	put, err := client.PutMessagesForIds(context.Background(), []byte(queue), -1, messages)
	var refused *hqueue.HQueueError
	if errors.As(err, &refused) {
		log.Fatalf("refused (%d): %s", refused.Code, refused.Message)
	} else if err != nil {
		log.Fatal(err)
	}
	for _, id := range put.Ids {
		fmt.Printf("%d %d:%d\n", put.PartitionID, id.Timestamp, id.SequenceID)
	}
}
