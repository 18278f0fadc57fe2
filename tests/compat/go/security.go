package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// security is how clients come to brokers: what they trust and show, and as whom they log in.
type security struct {
	Protocol    string `json:"protocol"`
	Ca          string `json:"ca"`          // a file: whom to trust
	Certificate string `json:"certificate"` // a file with the key, too; empty: none is shown
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
}

// tls is nil where nothing is encrypted.
func (s security) tls() (*tls.Config, error) {
	if s.Protocol != "SSL" && s.Protocol != "SASL_SSL" {
		return nil, nil
	}
	trusted, err := os.ReadFile(s.Ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(trusted)
	if s.Certificate != "" {
		own, err := tls.LoadX509KeyPair(s.Certificate, s.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
