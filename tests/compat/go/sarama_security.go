//go:build !old

package main

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// secure has all that follows go to these brokers, in this way.
func (s *saramaClient) secure(c command) (any, error) {
	config, err := c.Security.tls()
	s.bootstrap = c.Bootstrap
	s.security = func(all *sarama.Config) {
		all.Metadata.Retry.Max = 3 // who is kept out is to hear so
		all.Net.TLS.Enable, all.Net.TLS.Config = config != nil, config
		if c.Security.Mechanism != "" {
			login(all, c.Security)
		}
	}
	return nil, err
}

func login(config *sarama.Config, s security) {
	sasl := &config.Net.SASL
	sasl.Enable, sasl.Mechanism = true, sarama.SASLMechanism(s.Mechanism)
	sasl.Version = sarama.SASLHandshakeV1
	sasl.User, sasl.Password = s.User, s.Password
	switch s.Mechanism {
	case sarama.SASLTypeOAuth:
		sasl.TokenProvider = given(s.Token)
	case sarama.SASLTypeSCRAMSHA256:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scrams{hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scrams{hash: scram.SHA512} }
	}
}

// given is a token that somebody else got.
type given string

func (g given) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(g)}, nil
}

// scrams is what the library leaves to others, as its own example has it.
type scrams struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func (s *scrams) Begin(user, password, as string) error {
	client, err := s.hash.NewClient(user, password, as)
	if err == nil {
		s.ClientConversation = client.NewConversation()
	}
	return err
}
