// One program for each Go library: clients LIBRARY BOOTSTRAP.
//
// A line of JSON on standard input is a command, and the line that follows on standard output is
// its answer: {"ok": …} or {"error": "…"}. Bytes are in base64. A program holds at most one member
// of a group and one transactional producer; a test that needs two starts two programs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const (
	deadline = 30 * time.Second
	lineSize = 64 << 20
)

type header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

type record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Timestamp int64    `json:"timestamp"` // 0: the library's clock
}

// command has the fields of all commands; each uses some.
type command struct {
	Do         string            `json:"do"`
	Topic      string            `json:"topic"`
	Partition  int32             `json:"partition"` // -1: where the library puts each record
	Partitions int32             `json:"partitions"`
	Offset     int64             `json:"offset"`
	Timestamp  int64             `json:"timestamp"`
	Count      int               `json:"count"`
	WaitMs     int64             `json:"wait_ms"`
	Records    []record          `json:"records"`
	Codec      string            `json:"codec"`
	Acks       string            `json:"acks"`
	MaxBytes   int               `json:"max_bytes"`
	Committed  bool              `json:"committed"` // read_committed
	Group      string            `json:"group"`
	Instance   string            `json:"instance"`
	Strategy   string            `json:"strategy"`
	Id         string            `json:"id"`
	TimeoutMs  int               `json:"timeout_ms"`
	Target     string            `json:"target"`
	Configs    map[string]string `json:"configs"`
	Bootstrap  string            `json:"bootstrap"`
	Security   security          `json:"security"`
}

// library answers commands by name; one that it lacks is refused.
type library map[string]func(command) (any, error)

var libraries = map[string]func(bootstrap string) library{
	"franz-go": franzGo,
	"kafka-go": kafkaGo,
	"sarama":   saramaOf,
}

func main() {
	known := libraries[os.Args[1]](os.Args[2])
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineSize)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := answers.Encode(answer(known, lines.Bytes())); err != nil {
			panic(err)
		}
	}
}

func answer(known library, line []byte) map[string]any {
	asked := command{Partition: -1, WaitMs: deadline.Milliseconds()}
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]any{"error": err.Error()}
	}
	act, isKnown := known[asked.Do]
	if !isKnown {
		return map[string]any{"error": fmt.Sprintf("this library has no %s", asked.Do)}
	}
	found, err := act(asked)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"ok": found}
}

// wait is how long a command may look for records.
func (c command) wait() time.Duration {
	return time.Duration(c.WaitMs) * time.Millisecond
}

func at(timestamp int64) time.Time {
	if timestamp == 0 {
		return time.Now()
	}
	return time.UnixMilli(timestamp)
}
