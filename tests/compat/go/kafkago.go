package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

type segment struct {
	bootstrap string
	member    *kafka.Reader
	taken     []kafka.Message // by the member, since the last commit
}

func kafkaGo(bootstrap string) library {
	s := &segment{bootstrap: bootstrap}
	return segmentAdmin(s, library{
		"produce": s.produce,
		"read":    s.read,
		"join":    s.join,
		"poll":    s.poll,
		"commit":  s.commit,
		"leave":   func(command) (any, error) { return nil, s.member.Close() },
	})
}

var segmentCodecs = map[string]kafka.Compression{
	"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func (s *segment) produce(c command) (any, error) {
	placed := []record{}
	writer := &kafka.Writer{
		Addr: kafka.TCP(s.bootstrap), Topic: c.Topic, BatchTimeout: 10 * time.Millisecond,
		Compression: segmentCodecs[c.Codec], RequiredAcks: kafka.RequireAll, Balancer: kafka.Murmur2Balancer{},
	}
	if c.Partition >= 0 {
		writer.Balancer = kafka.BalancerFunc(func(kafka.Message, ...int) int { return int(c.Partition) })
	}
	if c.Acks == "1" {
		writer.RequiredAcks = kafka.RequireOne
	}
	if c.MaxBytes > 0 {
		writer.BatchBytes = int64(c.MaxBytes)
	}
	report(writer, &placed)
	err := writer.WriteMessages(context.Background(), messages(c)...)
	var refused kafka.WriteErrors
	if errors.As(err, &refused) {
		err = first(refused...)
	}
	return placed, first(err, writer.Close())
}

func messages(c command) []kafka.Message {
	found := make([]kafka.Message, len(c.Records))
	for i, r := range c.Records {
		found[i] = kafka.Message{Key: r.Key, Value: r.Value, Time: at(r.Timestamp)}
		for _, h := range r.Headers {
			found[i].Headers = append(found[i].Headers, kafka.Header{Key: h.Name, Value: h.Value})
		}
	}
	return found
}

func (s *segment) read(c command) (any, error) {
	config := kafka.ReaderConfig{
		Brokers: []string{s.bootstrap}, Topic: c.Topic, Partition: int(c.Partition),
		MaxWait: 200 * time.Millisecond, MinBytes: 1, MaxBytes: 10 << 20,
	}
	if c.MaxBytes > 0 {
		config.MaxBytes = c.MaxBytes
	}
	if c.Committed {
		config.IsolationLevel = kafka.ReadCommitted
	}
	reader := kafka.NewReader(config)
	defer reader.Close()
	if err := reader.SetOffset(c.Offset); err != nil {
		return nil, err
	}
	found, err := segmentTake(reader, c)
	return segmentRecords(found), err
}

// segmentTake fetches until so many records came or the time is over.
func segmentTake(reader *kafka.Reader, c command) ([]kafka.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.wait())
	defer cancel()
	taken := []kafka.Message{}
	for len(taken) < c.Count {
		message, err := reader.FetchMessage(ctx)
		if ctx.Err() != nil {
			return taken, nil
		}
		if err != nil {
			return taken, err
		}
		taken = append(taken, message)
	}
	return taken, nil
}

func segmentRecords(messages []kafka.Message) []record {
	found := make([]record, len(messages))
	for i, m := range messages {
		found[i] = record{
			Partition: int32(m.Partition), Offset: m.Offset, Key: m.Key, Value: m.Value, Timestamp: m.Time.UnixMilli(),
		}
		for _, h := range m.Headers {
			found[i].Headers = append(found[i].Headers, header{h.Key, h.Value})
		}
	}
	return found
}

func (s *segment) join(c command) (any, error) {
	s.member = kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{s.bootstrap}, GroupID: c.Group, Topic: c.Topic, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: 200 * time.Millisecond, MaxWait: 200 * time.Millisecond, MinBytes: 1, MaxBytes: 10 << 20,
		GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}}, JoinGroupBackoff: 200 * time.Millisecond,
	})
	return nil, nil
}

func (s *segment) poll(c command) (any, error) {
	found, err := segmentTake(s.member, c)
	s.taken = append(s.taken, found...)
	return segmentRecords(found), err
}

func (s *segment) commit(command) (any, error) {
	taken := s.taken
	s.taken = nil
	return nil, s.member.CommitMessages(context.Background(), taken...)
}
