// Testcontainers' own module on an image: containers IMAGE. Prints what was read, at its address
// outside and inside its network, and the cluster's id.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/modules/kafka"
	"github.com/testcontainers/testcontainers-go/network"
)

const (
	patience  = 60 * time.Second
	topic     = "orders"
	clusterID = "4L6g3nShT-eMCtK--X86sw"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(image string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	net, err := network.New(ctx)
	if err != nil {
		return err
	}
	defer net.Remove(ctx)
	container, err := kafka.Run(ctx, image,
		kafka.WithClusterID(clusterID), network.WithNetwork([]string{"broker"}, net))
	defer testcontainers.TerminateContainer(container)
	if err != nil {
		return err
	}
	fmt.Println("cluster:", container.ClusterID)
	brokers, err := container.Brokers(ctx)
	if err != nil {
		return err
	}
	value, err := toAndFro(brokers)
	if err != nil {
		return err
	}
	fmt.Println("outside:", value)
	words := []string{"kafkalite", "consume", "-b", "broker:9092", topic, "--count", "1"}
	_, output, err := container.Exec(ctx, words, exec.Multiplexed())
	if err != nil {
		return err
	}
	text, err := io.ReadAll(output)
	fmt.Println("inside:", strings.TrimSpace(string(text)))
	return err
}

func toAndFro(brokers []string) (string, error) {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer(brokers, config)
	if err != nil {
		return "", err
	}
	defer producer.Close()
	message := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("there")}
	if _, _, err = producer.SendMessage(message); err != nil {
		return "", err
	}
	consumer, err := sarama.NewConsumer(brokers, config)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return "", err
	}
	defer partition.Close()
	select {
	case record := <-partition.Messages():
		return string(record.Value), nil
	case <-time.After(patience):
		return "", fmt.Errorf("nothing came within %s", patience)
	}
}
