package main

import "github.com/IBM/sarama"

var saramaAdministration = map[string]func(sarama.ClusterAdmin, command) (any, error){
	"create": func(admin sarama.ClusterAdmin, c command) (any, error) {
		detail := &sarama.TopicDetail{NumPartitions: c.Partitions, ReplicationFactor: 1, ConfigEntries: pointers(c.Configs)}
		return nil, admin.CreateTopic(c.Topic, detail, false)
	},
	"delete": func(admin sarama.ClusterAdmin, c command) (any, error) {
		return nil, admin.DeleteTopic(c.Topic)
	},
	"topics": func(admin sarama.ClusterAdmin, _ command) (any, error) {
		listed, err := admin.ListTopics()
		return keys(listed), err
	},
	"partitions": func(admin sarama.ClusterAdmin, c command) (any, error) {
		described, err := admin.DescribeTopics([]string{c.Topic})
		if err != nil {
			return nil, err
		}
		numbers := []int32{}
		for _, partition := range described[0].Partitions {
			numbers = append(numbers, partition.ID)
		}
		if described[0].Err != sarama.ErrNoError {
			return nil, described[0].Err
		}
		return numbers, nil
	},
	"grow": func(admin sarama.ClusterAdmin, c command) (any, error) {
		return nil, admin.CreatePartitions(c.Topic, c.Partitions, nil, false)
	},
	"configs": func(admin sarama.ClusterAdmin, c command) (any, error) {
		entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: c.Topic})
		values := map[string]string{}
		for _, entry := range entries {
			values[entry.Name] = entry.Value
		}
		return values, err
	},
	"alter": func(admin sarama.ClusterAdmin, c command) (any, error) {
		return nil, admin.AlterConfig(sarama.TopicResource, c.Topic, pointers(c.Configs), false)
	},
	"trim": func(admin sarama.ClusterAdmin, c command) (any, error) {
		return nil, admin.DeleteRecords(c.Topic, map[int32]int64{c.Partition: c.Offset})
	},
	"groups": func(admin sarama.ClusterAdmin, _ command) (any, error) {
		listed, err := admin.ListConsumerGroups()
		return keys(listed), err
	},
	"group": func(admin sarama.ClusterAdmin, c command) (any, error) {
		described, err := admin.DescribeConsumerGroups([]string{c.Group})
		if err != nil {
			return nil, err
		}
		return map[string]any{"state": described[0].State, "members": len(described[0].Members)}, nil
	},
	"forget": func(admin sarama.ClusterAdmin, c command) (any, error) {
		return nil, admin.DeleteConsumerGroup(c.Group)
	},
	"offset": func(admin sarama.ClusterAdmin, c command) (any, error) {
		offsets, err := admin.ListConsumerGroupOffsets(c.Group, map[string][]int32{c.Topic: {c.Partition}})
		if err != nil {
			return nil, err
		}
		return offsets.GetBlock(c.Topic, c.Partition).Offset, nil
	},
}

func saramaAdmin(s *saramaClient, known library) library {
	for name, act := range saramaAdministration {
		known[name] = func(c command) (any, error) {
			admin, err := sarama.NewClusterAdmin([]string{s.bootstrap}, s.config())
			if err != nil {
				return nil, err
			}
			defer admin.Close()
			return act(admin, c)
		}
	}
	known["look_up"] = s.lookUp
	return known
}

func pointers(values map[string]string) map[string]*string {
	found := map[string]*string{}
	for name, value := range values {
		found[name] = &value
	}
	return found
}

func keys[V any](values map[string]V) []string {
	names := []string{}
	for name := range values {
		names = append(names, name)
	}
	return names
}
