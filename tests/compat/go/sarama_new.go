//go:build !old

package main

import (
	"time"

	"github.com/IBM/sarama"
)

var javaPartitioner = sarama.NewMurmur2Partitioner

func static(config *sarama.Config, instance string) {
	config.Consumer.Group.InstanceId = instance
}

func (s *saramaClient) lookUp(c command) (any, error) {
	admin, err := sarama.NewClusterAdmin([]string{s.bootstrap}, s.config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	options := &sarama.ListOffsetsOptions{}
	if c.Committed {
		options.IsolationLevel = sarama.ReadCommitted
	}
	found, err := admin.ListOffsets(map[string]map[int32]int64{c.Topic: {c.Partition: c.Timestamp}}, options)
	if err != nil {
		return nil, err
	}
	one := found[c.Topic][c.Partition]
	return one.Offset, saramaError(one.Err)
}

// saramaError is nil for the code that says so.
func saramaError(err error) error {
	if err == sarama.ErrNoError {
		return nil
	}
	return err
}

// saramaNewer adds what only newer versions have, or what comes with it.
func saramaNewer(s *saramaClient, known library) library {
	known["secure"] = s.secure
	known["init"] = s.init
	known["begin"] = func(command) (any, error) { return nil, s.producer.BeginTxn() }
	known["send"] = func(c command) (any, error) { return saramaSend(s.producer, c) }
	known["end"] = func(command) (any, error) { return nil, s.producer.CommitTxn() }
	known["abort"] = func(command) (any, error) { return nil, s.producer.AbortTxn() }
	known["offsets"] = func(c command) (any, error) {
		where := &sarama.PartitionOffsetMetadata{Partition: c.Partition, Offset: c.Offset}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{c.Topic: {where}}
		return nil, s.producer.AddOffsetsToTxn(offsets, c.Group)
	}
	return known
}

func (s *saramaClient) init(c command) (any, error) {
	config := s.config()
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = c.Id
	config.Producer.Transaction.Timeout = time.Duration(c.TimeoutMs) * time.Millisecond
	producer, err := sarama.NewSyncProducer([]string{s.bootstrap}, config)
	s.producer = producer
	return nil, err
}
