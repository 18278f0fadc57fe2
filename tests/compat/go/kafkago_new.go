//go:build !old

package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
)

// report collects where records came to lie.
func report(writer *kafka.Writer, placed *[]record) {
	writer.Completion = func(messages []kafka.Message, err error) {
		for _, m := range messages {
			*placed = append(*placed, record{Partition: int32(m.Partition), Offset: m.Offset, Key: m.Key})
		}
	}
}

var segmentAdministration = map[string]func(context.Context, *kafka.Client, command) (any, error){
	"create": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		topic := kafka.TopicConfig{Topic: c.Topic, NumPartitions: int(c.Partitions), ReplicationFactor: 1}
		for name, value := range c.Configs {
			entry := kafka.ConfigEntry{ConfigName: name, ConfigValue: value}
			topic.ConfigEntries = append(topic.ConfigEntries, entry)
		}
		created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
		if err != nil {
			return nil, err
		}
		return nil, created.Errors[c.Topic]
	},
	"delete": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		deleted, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{c.Topic}})
		if err != nil {
			return nil, err
		}
		return nil, deleted.Errors[c.Topic]
	},
	"topics": func(ctx context.Context, client *kafka.Client, _ command) (any, error) {
		known, err := client.Metadata(ctx, &kafka.MetadataRequest{})
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, topic := range known.Topics {
			names = append(names, topic.Name)
		}
		return names, nil
	},
	"partitions": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		known, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{c.Topic}})
		if err != nil {
			return nil, err
		}
		numbers := []int{}
		for _, partition := range known.Topics[0].Partitions {
			numbers = append(numbers, partition.ID)
		}
		return numbers, known.Topics[0].Error
	},
	"grow": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		topic := kafka.TopicPartitionsConfig{Name: c.Topic, Count: c.Partitions}
		request := &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{topic}}
		grown, err := client.CreatePartitions(ctx, request)
		if err != nil {
			return nil, err
		}
		return nil, grown.Errors[c.Topic]
	},
	"configs": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		topic := kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: c.Topic}
		request := &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{topic}}
		described, err := client.DescribeConfigs(ctx, request)
		if err != nil {
			return nil, err
		}
		values := map[string]string{}
		for _, entry := range described.Resources[0].ConfigEntries {
			values[entry.ConfigName] = entry.ConfigValue
		}
		return values, described.Resources[0].Error
	},
	"alter": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		topic := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: c.Topic}
		for name, value := range c.Configs {
			change := kafka.IncrementalAlterConfigsRequestConfig{
				Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet,
			}
			topic.Configs = append(topic.Configs, change)
		}
		request := &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{topic}}
		altered, err := client.IncrementalAlterConfigs(ctx, request)
		if err != nil {
			return nil, err
		}
		return nil, altered.Resources[0].Error
	},
	"look_up": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		request := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
			c.Topic: {{Partition: int(c.Partition), Timestamp: c.Timestamp}},
		}}
		if c.Committed {
			request.IsolationLevel = kafka.ReadCommitted
		}
		listed, err := client.ListOffsets(ctx, request)
		if err != nil {
			return nil, err
		}
		found := listed.Topics[c.Topic][0]
		switch c.Timestamp {
		case latest:
			return found.LastOffset, found.Error
		case earliest:
			return found.FirstOffset, found.Error
		}
		for offset := range found.Offsets {
			return offset, found.Error
		}
		return latest, found.Error
	},
	"groups": func(ctx context.Context, client *kafka.Client, _ command) (any, error) {
		listed, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, group := range listed.Groups {
			names = append(names, group.GroupID)
		}
		return names, listed.Error
	},
	"group": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		described, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{c.Group}})
		if err != nil {
			return nil, err
		}
		group := described.Groups[0]
		return map[string]any{"state": group.GroupState, "members": len(group.Members)}, group.Error
	},
	"forget": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		deleted, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{c.Group}})
		if err != nil {
			return nil, err
		}
		return nil, deleted.Errors[c.Group]
	},
	"offset": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		request := &kafka.OffsetFetchRequest{GroupID: c.Group, Topics: map[string][]int{c.Topic: {int(c.Partition)}}}
		fetched, err := client.OffsetFetch(ctx, request)
		if err != nil {
			return nil, err
		}
		return fetched.Topics[c.Topic][0].CommittedOffset, fetched.Error
	},
	"move": func(ctx context.Context, client *kafka.Client, c command) (any, error) {
		where := kafka.OffsetCommit{Partition: int(c.Partition), Offset: c.Offset}
		request := &kafka.OffsetCommitRequest{
			GroupID: c.Group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{c.Topic: {where}},
		}
		committed, err := client.OffsetCommit(ctx, request)
		if err != nil {
			return nil, err
		}
		return nil, committed.Topics[c.Topic][0].Error
	},
}

func segmentAdmin(s *segment, known library) library {
	for name, act := range segmentAdministration {
		known[name] = func(c command) (any, error) {
			// A transport keeps what it knows of topics for seconds, so each command has its own.
			transport := &kafka.Transport{}
			defer transport.CloseIdleConnections()
			client := &kafka.Client{Addr: kafka.TCP(s.bootstrap), Timeout: 10 * time.Second, Transport: transport}
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			return act(ctx, client, c)
		}
	}
	return known
}
