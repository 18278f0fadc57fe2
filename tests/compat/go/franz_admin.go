package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

// What is asked for by the timestamp of a look-up, besides a time.
const (
	latest   = -1
	earliest = -2
)

var franzAdministration = map[string]func(context.Context, *kadm.Client, command) (any, error){
	"create": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		configs := map[string]*string{}
		for name, value := range c.Configs {
			configs[name] = kadm.StringPtr(value)
		}
		created, err := admin.CreateTopics(ctx, c.Partitions, 1, configs, c.Topic)
		return nil, first(err, created[c.Topic].Err)
	},
	"delete": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		deleted, err := admin.DeleteTopics(ctx, c.Topic)
		return nil, first(err, deleted[c.Topic].Err)
	},
	"topics": func(ctx context.Context, admin *kadm.Client, _ command) (any, error) {
		listed, err := admin.ListTopics(ctx)
		return listed.Names(), err
	},
	"partitions": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		listed, err := admin.ListTopics(ctx, c.Topic)
		return listed[c.Topic].Partitions.Numbers(), first(err, listed[c.Topic].Err)
	},
	"grow": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		grown, err := admin.UpdatePartitions(ctx, int(c.Partitions), c.Topic)
		return nil, first(err, grown[c.Topic].Err)
	},
	"configs": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		described, err := admin.DescribeTopicConfigs(ctx, c.Topic)
		if err != nil {
			return nil, err
		}
		values := map[string]string{}
		for _, config := range described[0].Configs {
			values[config.Key] = config.MaybeValue()
		}
		return values, described[0].Err
	},
	"alter": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		changes := []kadm.AlterConfig{}
		for name, value := range c.Configs {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
		}
		altered, err := admin.AlterTopicConfigs(ctx, changes, c.Topic)
		if err != nil {
			return nil, err
		}
		return nil, altered[0].Err
	},
	"trim": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		offsets := kadm.Offsets{}
		offsets.AddOffset(c.Topic, c.Partition, c.Offset, -1)
		deleted, err := admin.DeleteRecords(ctx, offsets)
		return nil, first(err, deleted[c.Topic][c.Partition].Err)
	},
	"look_up": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		found, err := franzLookUp(ctx, admin, c)
		one := found[c.Topic][c.Partition]
		return one.Offset, first(err, one.Err)
	},
	"groups": func(ctx context.Context, admin *kadm.Client, _ command) (any, error) {
		listed, err := admin.ListGroups(ctx)
		return listed.Groups(), err
	},
	"group": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		described, err := admin.DescribeGroups(ctx, c.Group)
		group := described[c.Group]
		return map[string]any{"state": group.State, "members": len(group.Members)}, first(err, group.Err)
	},
	"forget": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		deleted, err := admin.DeleteGroups(ctx, c.Group)
		return nil, first(err, deleted[c.Group].Err)
	},
	"offset": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		offsets, err := admin.FetchOffsets(ctx, c.Group)
		if one, isCommitted := offsets.Lookup(c.Topic, c.Partition); isCommitted {
			return one.At, first(err, one.Err)
		}
		return latest, err
	},
	"move": func(ctx context.Context, admin *kadm.Client, c command) (any, error) {
		offsets := kadm.Offsets{}
		offsets.AddOffset(c.Topic, c.Partition, c.Offset, -1)
		return nil, admin.CommitAllOffsets(ctx, c.Group, offsets)
	},
}

func franzLookUp(ctx context.Context, admin *kadm.Client, c command) (kadm.ListedOffsets, error) {
	switch {
	case c.Timestamp == earliest:
		return admin.ListStartOffsets(ctx, c.Topic)
	case c.Timestamp == latest && c.Committed:
		return admin.ListCommittedOffsets(ctx, c.Topic)
	case c.Timestamp == latest:
		return admin.ListEndOffsets(ctx, c.Topic)
	}
	return admin.ListOffsetsAfterMilli(ctx, c.Timestamp, c.Topic)
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
