//go:build old

package main

import "github.com/IBM/sarama"

var javaPartitioner = sarama.NewManualPartitioner // it knows none that agrees with Java's

func static(*sarama.Config, string) {}

func (s *saramaClient) lookUp(c command) (any, error) {
	client, err := sarama.NewClient([]string{s.bootstrap}, s.config())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.GetOffset(c.Topic, c.Partition, c.Timestamp)
}

// saramaNewer adds nothing.
func saramaNewer(_ *saramaClient, known library) library {
	return known
}
