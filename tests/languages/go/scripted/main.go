// A consumer that answers as it is told: scripted PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs).
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"hqueue-client/hqueue"
)

type scripted struct {
	lock    sync.Mutex
	answers []string
}

func (s *scripted) ConsumeMessages(ctx context.Context, messages []*hqueue.TMessage) (int32, error) {
	if len(messages) == 0 {
		return 0, nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, "call %d\n", len(messages))
	for _, m := range messages {
		fmt.Fprintf(out, "%d %d:%d %x %x\n", m.GetPartitionID(), m.ID.Timestamp, m.ID.SequenceID, m.Topic, m.Value)
	}
	answer := "0"
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	fmt.Fprintf(out, "answer %s\n", answer)
	out.Flush()
	switch {
	case answer == "throw" && os.Args[2] == "panic":
		panic("the handler panics")
	case answer == "throw":
		return 0, errors.New("the handler fails")
	case answer == "die":
		os.Exit(1)
	case strings.HasPrefix(answer, "sleep:"):
		ms, err := strconv.Atoi(answer[6:])
		if err != nil {
			log.Fatal(err)
		}
		time.Sleep(time.Duration(ms) * time.Millisecond)
		return 0, nil
	}
	value, err := strconv.ParseInt(answer, 10, 32)
	if err != nil {
		log.Fatal(err)
	}
	return int32(value), nil
}

func main() {
	handler := &scripted{}
	if os.Args[5] != "-" {
		handler.answers = strings.Split(os.Args[5], ",")
	}
	socket, err := thrift.NewTServerSocket("127.0.0.1:" + os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	// Of the kind "small" it takes frames of 64 KiB at most.
	limits := &thrift.TConfiguration{}
	if os.Args[2] == "small" {
		limits.MaxFrameSize = 64 << 10
	}
	var transports thrift.TTransportFactory = thrift.NewTBufferedTransportFactory(8192)
	if os.Args[3] == "framed" {
		transports = thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), limits)
	}
	var protocols thrift.TProtocolFactory = thrift.NewTBinaryProtocolFactoryConf(nil)
	if os.Args[4] == "compact" {
		protocols = thrift.NewTCompactProtocolFactoryConf(nil)
	}
	processor := hqueue.NewHQueueSubscriberServiceProcessor(handler)
	log.Fatal(thrift.NewTSimpleServer4(processor, socket, transports, protocols).Serve())
}
