package backend

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
)

// A TLS contains the settings of TLS connections to a service, in PEM form.
type TLS struct {
	Insecure   bool // the service's certificate is not verified
	CA         string
	Cert, Key  string
	ServerName string // "" means the name in the address
}

// Errors of TLS.Config.
var (
	ErrCA   = errors.New("there is no certificate in PEM form in it")
	ErrPair = errors.New("a client certificate and its key can only be set together")
)

// Config returns the configuration for crypto/tls.
func (t TLS) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure, ServerName: t.ServerName}
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, ErrCA
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, ErrPair
	}
	if t.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
		if err != nil {
			return nil, fmt.Errorf("the client certificate and its key cannot be used: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// TLSTransport returns a Transport with TLS settings. Configurations with equal settings share
// it.
func (s Services) TLSTransport(t TLS) (*http.Transport, error) {
	if t == (TLS{}) {
		return s.Transport, nil
	}
	c, err := t.Config()
	if err != nil {
		return nil, err
	}
	return s.Shared.Get(fmt.Sprintf("tls %t %q %q %q %q", t.Insecure, t.CA, t.Cert, t.Key, t.ServerName), func() any {
		clone := s.Transport.Clone()
		clone.TLSClientConfig = c
		return clone
	}).(*http.Transport), nil
}
