package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct {
	bootstrap string
	security  []kgo.Opt
	member    *kgo.Client
	producer  *kgo.Client // with a transactional id
	lock      sync.Mutex  // of what the callbacks of a rebalance write
	owned     map[string]map[int32]bool
	assigned  int // how many partitions were ever assigned, again after each loss
}

func franzGo(bootstrap string) library {
	f := &franz{bootstrap: bootstrap, owned: map[string]map[int32]bool{}}
	return franzAdmin(bootstrap, library{
		"secure":     f.secure,
		"produce":    f.produce,
		"read":       f.read,
		"join":       f.join,
		"poll":       f.poll,
		"assignment": f.assignment,
		"commit":     f.commit,
		"leave":      f.leave,
		"init":       f.init,
		"begin":      func(command) (any, error) { return nil, f.producer.BeginTransaction() },
		"send":       func(c command) (any, error) { return franzSend(f.producer, c) },
		"abort":      func(command) (any, error) { return nil, f.end(kgo.TryAbort) },
		"end":        func(command) (any, error) { return nil, f.end(kgo.TryCommit) },
		"transform":  f.transform,
	})
}

func (f *franz) client(options ...kgo.Opt) (*kgo.Client, error) {
	common := []kgo.Opt{
		kgo.SeedBrokers(f.bootstrap), kgo.AllowAutoTopicCreation(),
		kgo.RetryTimeout(deadline),
		kgo.FetchMaxWait(200 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond),
	}
	client, err := kgo.NewClient(append(append(common, f.security...), options...)...)
	if err != nil || f.security == nil {
		return client, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := client.Ping(ctx); err != nil { // or who is kept out would be told that time is over
		client.Close()
		return nil, err
	}
	return client, nil
}

var franzCodecs = map[string]kgo.CompressionCodec{
	"":       kgo.NoCompression(),
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func (f *franz) produce(c command) (any, error) {
	options := []kgo.Opt{kgo.ProducerBatchCompression(franzCodecs[c.Codec])}
	if c.Partition >= 0 {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	if c.Acks == "1" {
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	if c.MaxBytes > 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(int32(c.MaxBytes)))
	}
	producer, err := f.client(options...)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	return franzSend(producer, c)
}

func franzSend(producer *kgo.Client, c command) (any, error) {
	records := make([]*kgo.Record, len(c.Records))
	for i, r := range c.Records {
		records[i] = &kgo.Record{
			Topic: c.Topic, Partition: c.Partition, Key: r.Key, Value: r.Value, Timestamp: at(r.Timestamp),
		}
		for _, h := range r.Headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	results := producer.ProduceSync(ctx, records...)
	placed := make([]record, len(records))
	for i, r := range records {
		placed[i] = record{Partition: r.Partition, Offset: r.Offset, Key: r.Key}
	}
	return placed, results.FirstErr()
}

func isolation(c command) kgo.Opt {
	if c.Committed {
		return kgo.FetchIsolationLevel(kgo.ReadCommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
}

func (f *franz) read(c command) (any, error) {
	start := map[string]map[int32]kgo.Offset{c.Topic: {c.Partition: kgo.NewOffset().At(c.Offset)}}
	options := []kgo.Opt{kgo.ConsumePartitions(start), isolation(c)}
	if c.MaxBytes > 0 {
		options = append(options, kgo.FetchMaxPartitionBytes(int32(c.MaxBytes)))
	}
	consumer, err := f.client(options...)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	return franzTake(consumer, c)
}

// franzTake polls until so many records came or the time is over.
func franzTake(consumer *kgo.Client, c command) ([]record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.wait())
	defer cancel()
	taken := []record{}
	for len(taken) < c.Count && ctx.Err() == nil {
		fetches := consumer.PollRecords(ctx, c.Count-len(taken))
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				return taken, failed.Err
			}
		}
		fetches.EachRecord(func(r *kgo.Record) { taken = append(taken, franzRecord(r)) })
	}
	return taken, nil
}

func franzRecord(r *kgo.Record) record {
	found := record{
		Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp.UnixMilli(),
	}
	for _, h := range r.Headers {
		found.Headers = append(found.Headers, header{h.Key, h.Value})
	}
	return found
}

func (f *franz) join(c command) (any, error) {
	options := append(f.groupOptions(c), isolation(c), kgo.DisableAutoCommit())
	member, err := f.client(options...)
	f.member = member
	return nil, err
}

func (f *franz) groupOptions(c command) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, gained map[string][]int32) { f.own(gained, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { f.own(lost, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { f.own(lost, false) }),
	}
	if c.Instance != "" {
		options = append(options, kgo.InstanceID(c.Instance))
	}
	switch c.Strategy {
	case "cooperative":
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "server":
		options = append(options, serverSide()...)
	default:
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	}
	return options
}

func (f *franz) own(partitions map[string][]int32, isGained bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for topic, numbers := range partitions {
		if f.owned[topic] == nil {
			f.owned[topic] = map[int32]bool{}
		}
		for _, number := range numbers {
			delete(f.owned[topic], number)
			if isGained {
				f.owned[topic][number] = true
				f.assigned++
			}
		}
	}
}

func (f *franz) assignment(c command) (any, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	numbers := []int32{}
	for number := range f.owned[c.Topic] {
		numbers = append(numbers, number)
	}
	return map[string]any{"partitions": numbers, "assigned": f.assigned}, nil
}

func (f *franz) poll(c command) (any, error) {
	return franzTake(f.member, c)
}

func (f *franz) commit(command) (any, error) {
	return nil, f.member.CommitUncommittedOffsets(context.Background())
}

func (f *franz) leave(command) (any, error) {
	f.member.Close()
	return nil, nil
}

// init waits for the end of another's transaction, as newer versions of the library do by themselves.
func (f *franz) init(c command) (any, error) {
	for end := time.Now().Add(deadline); ; {
		producer, err := f.client(
			kgo.TransactionalID(c.Id),
			kgo.TransactionTimeout(time.Duration(c.TimeoutMs)*time.Millisecond),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		)
		if err != nil {
			return nil, err
		}
		f.producer = producer
		_, _, err = producer.ProducerID(context.Background())
		if !errors.Is(err, kerr.ConcurrentTransactions) || time.Now().After(end) {
			return nil, err
		}
		producer.Close()
	}
}

func (f *franz) end(how kgo.TransactionEndTry) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	return f.producer.EndTransaction(ctx, how)
}

// transform consumes, produces with a mark and commits both, transaction by transaction, until so
// many records went over. Every second transaction is given up first and done again.
func (f *franz) transform(c command) (any, error) {
	common := []kgo.Opt{
		kgo.SeedBrokers(f.bootstrap), kgo.TransactionalID(c.Id), kgo.RequireStableFetchOffsets(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(200 * time.Millisecond),
	}
	session, err := kgo.NewGroupTransactSession(append(common, f.groupOptions(c)...)...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), c.wait())
	defer cancel()
	done := 0
	for round := 0; done < c.Count && ctx.Err() == nil; round++ {
		moved, err := franzMove(ctx, session, c.Target, round%2 == 1)
		if err != nil {
			return nil, err
		}
		done += moved
	}
	return done, ctx.Err()
}

// franzMove is one transaction over what the next poll brings; it tells how many went over for good.
func franzMove(ctx context.Context, session *kgo.GroupTransactSession, target string, isKept bool) (int, error) {
	const atOnce = 7
	fetches := session.PollRecords(ctx, atOnce)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := session.Begin(); err != nil {
		return 0, err
	}
	fetches.EachRecord(func(r *kgo.Record) {
		marked := append(append([]byte{}, r.Value...), '!')
		session.Produce(ctx, &kgo.Record{Topic: target, Value: marked}, nil)
	})
	isCommitted, err := session.End(ctx, kgo.TransactionEndTry(isKept))
	if err != nil || !isCommitted {
		return 0, err
	}
	return fetches.NumRecords(), nil
}

func franzAdmin(bootstrap string, known library) library {
	admin := func() *kadm.Client {
		client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
		if err != nil {
			panic(err) // of options that are fixed
		}
		return kadm.NewClient(client)
	}
	for name, act := range franzAdministration {
		known[name] = func(c command) (any, error) {
			client := admin()
			defer client.Close()
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			return act(ctx, client, c)
		}
	}
	return known
}
