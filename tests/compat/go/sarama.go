package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct {
	bootstrap string
	security  func(*sarama.Config)
	member    *saramaMember
	producer  sarama.SyncProducer // with a transactional id
}

func saramaOf(bootstrap string) library {
	s := &saramaClient{bootstrap: bootstrap, security: func(*sarama.Config) {}}
	return saramaNewer(s, saramaAdmin(s, library{
		"produce":    s.produce,
		"read":       s.read,
		"join":       s.join,
		"poll":       func(c command) (any, error) { return s.member.take(c), nil },
		"assignment": func(c command) (any, error) { return s.member.assignment(c.Topic), nil },
		"commit":     func(command) (any, error) { return nil, s.member.commit() },
		"leave":      func(command) (any, error) { return nil, s.member.close() },
	}))
}

func (s *saramaClient) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Metadata.Retry.Max = 50
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Consumer.MaxWaitTime = 200 * time.Millisecond
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	s.security(config)
	return config
}

func isolate(config *sarama.Config, c command) {
	if c.Committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
}

var saramaCodecs = map[string]sarama.CompressionCodec{
	"":       sarama.CompressionNone,
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func (s *saramaClient) produce(c command) (any, error) {
	config := s.config()
	config.Producer.Compression = saramaCodecs[c.Codec]
	config.Producer.RequiredAcks = sarama.WaitForAll
	if c.Acks == "1" {
		config.Producer.RequiredAcks = sarama.WaitForLocal
	}
	if c.MaxBytes > 0 {
		config.Producer.MaxMessageBytes = c.MaxBytes
	}
	config.Producer.Partitioner = javaPartitioner
	if c.Partition >= 0 {
		config.Producer.Partitioner = sarama.NewManualPartitioner
	}
	producer, err := sarama.NewSyncProducer([]string{s.bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	return saramaSend(producer, c)
}

func saramaSend(producer sarama.SyncProducer, c command) (any, error) {
	messages := make([]*sarama.ProducerMessage, len(c.Records))
	for i, r := range c.Records {
		messages[i] = &sarama.ProducerMessage{
			Topic: c.Topic, Partition: c.Partition, Key: encoder(r.Key), Value: encoder(r.Value),
			Timestamp: at(r.Timestamp),
		}
		for _, h := range r.Headers {
			one := sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value}
			messages[i].Headers = append(messages[i].Headers, one)
		}
	}
	err := producer.SendMessages(messages)
	placed := make([]record, len(messages))
	for i, m := range messages {
		placed[i] = record{Partition: m.Partition, Offset: m.Offset, Key: c.Records[i].Key}
	}
	var refused sarama.ProducerErrors
	if errors.As(err, &refused) {
		err = refused[0].Err
	}
	return placed, err
}

// encoder keeps null apart from empty.
func encoder(value []byte) sarama.Encoder {
	if value == nil {
		return nil
	}
	return sarama.ByteEncoder(value)
}

func (s *saramaClient) read(c command) (any, error) {
	config := s.config()
	isolate(config, c)
	if c.MaxBytes > 0 {
		config.Consumer.Fetch.Default = int32(c.MaxBytes)
	}
	consumer, err := sarama.NewConsumer([]string{s.bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(c.Topic, c.Partition, c.Offset)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	taken := []record{}
	for end := time.After(c.wait()); len(taken) < c.Count; {
		select {
		case message := <-partition.Messages():
			taken = append(taken, saramaRecord(message))
		case <-end:
			return taken, nil
		}
	}
	return taken, nil
}

func saramaRecord(m *sarama.ConsumerMessage) record {
	found := record{
		Partition: m.Partition, Offset: m.Offset, Key: m.Key, Value: m.Value, Timestamp: m.Timestamp.UnixMilli(),
	}
	for _, h := range m.Headers {
		found.Headers = append(found.Headers, header{string(h.Key), h.Value})
	}
	return found
}

// saramaMember hands records from the sessions of a group to commands, one at a time, so that none
// is held when its partition is taken away.
type saramaMember struct {
	group   sarama.ConsumerGroup
	stop    context.CancelFunc
	records chan *sarama.ConsumerMessage
	ended   chan error

	lock     sync.Mutex // of the session, which rebalances replace
	session  sarama.ConsumerGroupSession
	assigned int
}

func (s *saramaClient) join(c command) (any, error) {
	config := s.config()
	isolate(config, c)
	static(config, c.Instance)
	group, err := sarama.NewConsumerGroup([]string{s.bootstrap}, c.Group, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.member = &saramaMember{
		group: group, stop: stop, records: make(chan *sarama.ConsumerMessage), ended: make(chan error, 1),
	}
	go s.member.run(ctx, c.Topic)
	return nil, nil
}

// run joins again after each rebalance.
func (m *saramaMember) run(ctx context.Context, topic string) {
	var err error
	for err == nil && ctx.Err() == nil {
		err = m.group.Consume(ctx, []string{topic}, m)
	}
	m.ended <- err
}

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = session
	for _, partitions := range session.Claims() {
		m.assigned += len(partitions)
	}
	return nil
}

func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = nil
	return nil
}

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message := <-claim.Messages():
			if message == nil {
				return nil
			}
			select {
			case m.records <- message:
				session.MarkMessage(message, "")
			case <-session.Context().Done():
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *saramaMember) take(c command) []record {
	taken := []record{}
	for end := time.After(c.wait()); len(taken) < c.Count; {
		select {
		case message := <-m.records:
			taken = append(taken, saramaRecord(message))
		case <-end:
			return taken
		}
	}
	return taken
}

func (m *saramaMember) assignment(topic string) any {
	m.lock.Lock()
	defer m.lock.Unlock()
	partitions := []int32{}
	if m.session != nil {
		partitions = append(partitions, m.session.Claims()[topic]...)
	}
	return map[string]any{"partitions": partitions, "assigned": m.assigned}
}

// commit is at once where the library can; older ones commit what is marked when they leave.
func (m *saramaMember) commit() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if able, isAble := m.session.(interface{ Commit() }); isAble {
		able.Commit()
	}
	return nil
}

func (m *saramaMember) close() error {
	m.stop()
	err := <-m.ended
	return first(err, m.group.Close())
}
