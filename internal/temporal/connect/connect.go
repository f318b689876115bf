// Package connect connects to a Temporal server, and seals all data that the server stores.
//
// Main types: Settings and Codec. The one rule: clients of the engine are only created here, so
// that its database contains no plain text except the names of units, runs, queues and machines.
package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
)

// Settings contains the address of the engine and the identity of the client.
type Settings struct {
	Address, Namespace, Queue string
	Identity                  string
	Env                       sys.Env // contains TERRACE_TEMPORAL_* and the key
	Log                       io.Writer
}

// Parse parses an address of the form temporal://HOST:PORT/NAMESPACE/QUEUE.
func Parse(on string) (Settings, error) {
	u, err := url.Parse(on)
	if err != nil || u.Scheme != "temporal" || u.Host == "" {
		return Settings{}, fmt.Errorf("%q is not temporal://HOST:PORT/NAMESPACE/QUEUE", on)
	}
	if u.Port() == "" || u.Hostname() == "" {
		return Settings{}, fmt.Errorf("%s is no address of a Temporal server: it must be HOST:PORT, such as localhost:7233", u.Host)
	}
	namespace, queue, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if namespace == "" || queue == "" || strings.Contains(queue, "/") {
		return Settings{}, fmt.Errorf("%q does not name a namespace and a queue: it must be temporal://HOST:PORT/NAMESPACE/QUEUE", on)
	}
	return Settings{Address: u.Host, Namespace: namespace, Queue: queue}, nil
}

// Environment variables that configure the connection to the engine.
const (
	certVariable   = "TERRACE_TEMPORAL_TLS_CERT"
	keyVariable    = "TERRACE_TEMPORAL_TLS_KEY"
	caVariable     = "TERRACE_TEMPORAL_TLS_CA"
	serverVariable = "TERRACE_TEMPORAL_TLS_SERVER_NAME"
	apiVariable    = "TERRACE_TEMPORAL_API_KEY"
)

// Dial connects to the engine.
func Dial(ctx context.Context, s Settings, sealer *remote.Sealer) (client.Client, error) {
	o := client.Options{
		HostPort: s.Address, Namespace: s.Namespace, Identity: s.Identity,
		Logger:           logger{s.Log},
		DataConverter:    Converter(sealer),
		FailureConverter: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: Converter(sealer), EncodeCommonAttributes: true}),
	}
	config, err := s.tls()
	if err != nil {
		return nil, err
	}
	o.ConnectionOptions.TLS = config
	if key := s.Env.Get(apiVariable); key != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(key)
		if o.ConnectionOptions.TLS == nil { // without TLS, the key could be read on the network
			o.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("the Temporal server at %s cannot be reached: %s%w", s.Address, unknownHost(ctx, s.Address), err)
	}
	return c, nil
}

// unknownHost returns a text if the host of an address does not exist, because gRPC does not
// report that. It returns "" if the host exists or if that is unknown.
func unknownHost(ctx context.Context, address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var dns *net.DNSError
	if _, err = net.DefaultResolver.LookupHost(ctx, host); errors.As(err, &dns) && dns.IsNotFound {
		return "there is no host " + host + ": "
	}
	return ""
}

// Away reports whether err, an error of Dial, means that the server does not answer, so that a
// retry may succeed. A rejected certificate is not such an error.
func Away(err error) bool {
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	const tls = "authentication handshake failed" // gRPC has no error type for this
	return (errors.As(err, &unavailable) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded)) && !strings.Contains(err.Error(), tls)
}

// logger writes the warnings and errors of the engine's client.
type logger struct{ out io.Writer }

func (logger) Debug(string, ...any)            {}
func (logger) Info(string, ...any)             {}
func (l logger) Warn(msg string, more ...any)  { l.line("warning", msg, more) }
func (l logger) Error(msg string, more ...any) { l.line("error", msg, more) }

func (l logger) line(level, msg string, more []any) {
	fmt.Fprintf(l.out, "temporal: %s: %s", level, msg)
	for i := 0; i+1 < len(more); i += 2 {
		fmt.Fprintf(l.out, " %v=%v", more[i], more[i+1])
	}
	fmt.Fprintln(l.out)
}

// tls returns the TLS configuration, or nil for a connection without TLS.
func (s *Settings) tls() (*tls.Config, error) {
	cert, key, ca, name := s.Env.Get(certVariable), s.Env.Get(keyVariable), s.Env.Get(caVariable), s.Env.Get(serverVariable)
	if cert == "" && key == "" && ca == "" && name == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if (cert == "") != (key == "") {
		return nil, fmt.Errorf("%s and %s go together: one of them is not set", certVariable, keyVariable)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("the certificate of %s cannot be read: %w", certVariable, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	if ca != "" {
		pem, err := readfile.Whole(ca)
		if err != nil {
			return nil, fmt.Errorf("the certificates of %s cannot be read: %w", caVariable, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s names a file without certificates", caVariable)
		}
	}
	return out, nil
}

// Converter returns the converter from values to payloads: JSON, sealed.
func Converter(sealer *remote.Sealer) converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), Codec{sealer})
}

// A Codec seals and opens payloads.
type Codec struct{ Sealer *remote.Sealer }

const (
	sealedEncoding = "binary/terrace-sealed"
	aboutPayloads  = "payload"
)

// Encode implements converter.PayloadCodec.
func (c Codec) Encode(all []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(all))
	for i, p := range all {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, err
		}
		sealed, err := c.Sealer.Seal(plain, aboutPayloads)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding)}, Data: sealed}
	}
	return out, nil
}

var errClear = errors.New("a payload of the run is not sealed, so it may come from anybody")

// Decode implements converter.PayloadCodec.
func (c Codec) Decode(all []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(all))
	for i, p := range all {
		if string(p.Metadata[converter.MetadataEncoding]) != sealedEncoding {
			return nil, errClear
		}
		plain, err := c.Sealer.Open(p.Data, aboutPayloads)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
