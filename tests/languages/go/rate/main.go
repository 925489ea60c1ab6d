// How many messages a second go through: rate serve PORT, rate call PORT (see speed/counting.rs).
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"hqueue-client/hqueue"
)

const digits = 10

var began = time.Now()

type counter struct {
	lock                 sync.Mutex
	next, calls, printed int64
}

func (c *counter) ConsumeMessages(ctx context.Context, messages []*hqueue.TMessage) (int32, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, m := range messages {
		number := int64(0)
		for _, digit := range m.Value[:digits] {
			number = number*10 + int64(digit-'0')
		}
		if number == 0 {
			fmt.Println("run")
			c.next, c.calls = 0, 0
		}
		if number != c.next || len(m.Value) != 1024 {
			fmt.Println("fault message", number, "of", len(m.Value), "bytes came where", c.next, "was due")
		}
		c.next = number + 1
	}
	if len(messages) == 0 {
		return 0, nil
	}
	c.calls++
	if now := time.Since(began).Microseconds(); now-c.printed >= 100_000 {
		c.printed = now
		fmt.Println("at", now, c.next, c.calls)
	}
	return 0, nil
}

func serve(address string) error {
	socket, err := thrift.NewTServerSocket(address)
	if err != nil {
		return err
	}
	processor := hqueue.NewHQueueSubscriberServiceProcessor(&counter{})
	protocols := thrift.NewTBinaryProtocolFactoryConf(nil)
	return thrift.NewTSimpleServer4(processor, socket, thrift.NewTBufferedTransportFactory(8192), protocols).Serve()
}

func call(address string) error {
	transport := thrift.NewTBufferedTransport(thrift.NewTSocketConf(address, nil), 8192)
	if err := transport.Open(); err != nil {
		return err
	}
	client := hqueue.NewHQueueSubscriberServiceClientFactory(transport, thrift.NewTBinaryProtocolFactoryConf(nil))
	var messages []*hqueue.TMessage
	for n := range 100 {
		id := &hqueue.TMessageID{Timestamp: 1, SequenceID: int16(n)}
		value := bytes.Repeat([]byte("x"), 1024)
		messages = append(messages, &hqueue.TMessage{ID: id, PartitionID: thrift.Int16Ptr(0), Topic: []byte("t"), Value: value})
	}
	for number := int64(0); ; {
		for _, m := range messages {
			rest := number
			for n := digits - 1; n >= 0; n-- {
				m.Value[n] = byte('0' + rest%10)
				rest /= 10
			}
			number++
		}
		if _, err := client.ConsumeMessages(context.Background(), messages); err != nil {
			return err
		}
	}
}

func main() {
	run := map[string]func(string) error{"serve": serve, "call": call}[os.Args[1]]
	log.Fatal(run("127.0.0.1:" + os.Args[2]))
}
