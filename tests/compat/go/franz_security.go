package main

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// secure has all that follows go to these brokers, in this way.
func (f *franz) secure(c command) (any, error) {
	f.bootstrap, f.security = c.Bootstrap, nil
	config, err := c.Security.tls()
	if config != nil {
		f.security = append(f.security, kgo.DialTLSConfig(config))
	}
	if c.Security.Mechanism != "" {
		f.security = append(f.security, kgo.SASL(franzMechanism(c.Security)))
	}
	return nil, err
}

func franzMechanism(s security) sasl.Mechanism {
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()
	default:
		return oauth.Auth{Token: s.Token}.AsMechanism()
	}
}
