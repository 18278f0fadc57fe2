//go:build !old

package main

import "github.com/twmb/franz-go/pkg/kgo"

// serverSide are the options of the group protocol in which the coordinator assigns.
func serverSide() []kgo.Opt {
	return []kgo.Opt{kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer()}
}
