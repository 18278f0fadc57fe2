//go:build old

package main

import "github.com/twmb/franz-go/pkg/kgo"

// serverSide is of newer versions only.
func serverSide() []kgo.Opt {
	panic("no such protocol")
}
