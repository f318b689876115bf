package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// newSender returns the sender of a signal.
func newSender(kind Kind, s Signal, o Options) (sender, error) {
	secure, err := s.tls(o.Dir)
	if err != nil {
		return nil, err
	}
	if s.Exporter == GRPC {
		return newGRPC(kind, s, o, secure)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	client := transfer.New(o.Env)
	if tr, ok := client.HTTP.Transport.(*http.Transport); ok {
		tr.TLSClientConfig = secure
	}
	return &overHTTP{client: client.HTTP, url: u, signal: s, agent: client.UserAgent}, nil
}

// tls returns the TLS configuration for the receiver, or nil without TLS.
func (s *Signal) tls(dir string) (*tls.Config, error) {
	if s.Plain {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.Trusting}
	at := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	if s.CA != "" {
		text, err := readfile.Whole(at(s.CA))
		if err != nil {
			return nil, fmt.Errorf("the certificates of the receiver of telemetry cannot be read: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("there are no certificates for the receiver of telemetry in %s", s.CA)
		}
	}
	if s.Certificate != "" && s.Key != "" {
		mine, err := tls.LoadX509KeyPair(at(s.Certificate), at(s.Key))
		if err != nil {
			return nil, fmt.Errorf("the certificate for the receiver of telemetry cannot be read: %w", err)
		}
		c.Certificates = []tls.Certificate{mine}
	}
	return c, nil
}

// overHTTP sends requests with OTLP/HTTP.
type overHTTP struct {
	client *http.Client
	url    *url.URL
	signal Signal
	agent  string
}

// mostAnswer is the maximum size, in bytes, of a response that is read.
const mostAnswer = 1 << 16

func (h *overHTTP) send(ctx context.Context, body []byte) (answer []byte, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.signal.Timeout)
	defer cancel()
	if h.signal.Gzip {
		body = zipped(body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	for _, x := range h.signal.Headers {
		req.Header.Set(x[0], x[1])
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", h.agent)
	if h.signal.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := h.client.Do(req)
	if err != nil {
		if ue, ok := err.(*url.Error); ok { // url.Error contains the address, which may contain a password
			err = ue.Err
		}
		return nil, true, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	switch c := resp.StatusCode; {
	case c/100 == 2:
		return answer, false, nil // even if the body could not be read
	case c == http.StatusTooManyRequests, c == http.StatusBadGateway, c == http.StatusServiceUnavailable, c == http.StatusGatewayTimeout:
		return nil, true, fmt.Errorf("it answered %q", resp.Status)
	case err != nil:
		return nil, true, err
	}
	return nil, false, fmt.Errorf("it answered %q", resp.Status)
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a buffer never returns an error
	_ = z.Close()
	return out.Bytes()
}

func (h *overHTTP) where() string { return transfer.Public(h.url) }

func (h *overHTTP) close() { h.client.CloseIdleConnections() }
