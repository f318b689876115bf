package connect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// front is a server that answers the first request of a client, and records the client's
// identity.
type front struct {
	workflowservice.UnimplementedWorkflowServiceServer
	mu   sync.Mutex
	keys []string
}

func (f *front) GetSystemInfo(ctx context.Context, _ *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys = append(f.keys, strings.Join(md.Get("authorization"), ","))
	return &workflowservice.GetSystemInfoResponse{}, nil
}

// authority is a certificate authority.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, "ca")
	return a
}

// sign writes NAME.pem and NAME.key.
func (a *authority) sign(c *x509.Certificate, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.n++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(a.n), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(a.path(name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// A server that requires client certificates accepts a client with a valid certificate and the
// API key. It rejects a client without one, or with one of another authority.
func TestTLS(t *testing.T) {
	ours, strangers := newAuthority(t, "ours"), newAuthority(t, "strangers")
	ours.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "temporal"}, DNSNames: []string{"temporal.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "server")
	for _, a := range []*authority{ours, strangers} {
		a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "worker"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, "client")
	}
	pair, err := tls.LoadX509KeyPair(ours.path("server.pem"), ours.path("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ours.cert)
	start := func(auth tls.ClientAuthType) (*front, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f := &front{}
		s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: auth, ClientCAs: clients})))
		workflowservice.RegisterWorkflowServiceServer(s, f)
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Serve(l) })
		t.Cleanup(func() {
			s.Stop()
			wg.Wait()
		})
		return f, l.Addr().String()
	}
	strict, strictAt := start(tls.RequireAndVerifyClientCert)
	cloud, cloudAt := start(tls.NoClientCert)
	sealer, err := remote.NewSealer(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	ca, name := caVariable+"="+ours.path("ca.pem"), serverVariable+"=temporal.example"
	own := []string{certVariable + "=" + ours.path("client.pem"), keyVariable + "=" + ours.path("client.key")}
	for _, c := range []struct {
		name  string
		front *front
		at    string
		env   sys.Env
		key   string // key that the server received
		wrong string // expected in the error
	}{
		{"a certificate of the client", strict, strictAt, append(sys.Env{ca, name}, own...), "", ""},
		{"none", strict, strictAt, sys.Env{ca, name}, "", "cannot be reached"},
		{"a stranger's", strict, strictAt, sys.Env{ca, name, certVariable + "=" + strangers.path("client.pem"), keyVariable + "=" + strangers.path("client.key")}, "", "cannot be reached"},
		{"in the clear", strict, strictAt, nil, "", "cannot be reached"},
		{"another name", strict, strictAt, append(sys.Env{ca, serverVariable + "=elsewhere.example"}, own...), "", "cannot be reached"},
		{"an authority that is not known", strict, strictAt, append(sys.Env{name, caVariable + "=" + strangers.path("ca.pem")}, own...), "", "cannot be reached"},
		{"a certificate without its key", strict, strictAt, sys.Env{ca, name, own[0]}, "", "go together"},
		{"a file that is not there", strict, strictAt, sys.Env{caVariable + "=" + ours.path("none.pem")}, "", "cannot be read"},
		{"a file without certificates", strict, strictAt, sys.Env{caVariable + "=" + ours.path("client.key")}, "", "without certificates"},
		{"the key of an account", cloud, cloudAt, sys.Env{ca, name, apiVariable + "=planted-api-key"}, "Bearer planted-api-key", ""},
		{"the key of an account, of which nothing goes out in the clear", cloud, cloudAt, sys.Env{apiVariable + "=planted-api-key"}, "", "cannot be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client, err := Dial(t.Context(), Settings{Address: c.at, Namespace: "n", Env: c.env, Log: io.Discard}, sealer)
			if err == nil {
				client.Close()
			}
			if (err != nil) != (c.wrong != "") || err != nil && (!strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "planted")) {
				t.Fatalf("got %v, want %q", err, c.wrong)
			}
			if c.key != "" {
				c.front.mu.Lock()
				defer c.front.mu.Unlock()
				if last := c.front.keys[len(c.front.keys)-1]; last != c.key {
					t.Errorf("the server heard %q", last)
				}
			}
		})
	}
}

// Sealed data can be opened again and contains no plain text. Data that is not sealed, or sealed
// with another key, is rejected.
func TestCodec(t *testing.T) {
	seal := func(b byte) *remote.Sealer {
		key := make([]byte, 32)
		key[0] = b
		s, err := remote.NewSealer(base64.StdEncoding.EncodeToString(key))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain, err := Converter(seal(1)).ToPayloads("planted-secret", map[string]string{"password": "planted-secret"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "planted") || strings.Contains(plain.String(), "password") {
		t.Errorf("a payload can be read: %s", plain)
	}
	var text string
	var all map[string]string
	if err := Converter(seal(1)).FromPayloads(plain, &text, &all); err != nil || text != "planted-secret" || all["password"] != text {
		t.Errorf("got %q, %v, %v", text, all, err)
	}
	if err := Converter(seal(2)).FromPayloads(plain, &text, &all); err == nil {
		t.Error("opened with another key")
	}
	plain.Payloads[0].Metadata = nil
	if err := Converter(seal(1)).FromPayloads(plain, &text, &all); err == nil {
		t.Error("what is not sealed was taken")
	}
}

// An address without a port is rejected before anything is sent.
func TestParsePort(t *testing.T) {
	for _, on := range []string{"temporal://localhost/default/q", "temporal://:7233/default/q"} {
		if _, err := Parse(on); err == nil || !strings.Contains(err.Error(), "must be HOST:PORT") {
			t.Errorf("%s: %v", on, err)
		}
	}
	if s, err := Parse("temporal://localhost:7233/default/q"); err != nil || s.Address != "localhost:7233" || s.Queue != "q" {
		t.Errorf("%+v, %v", s, err)
	}
}

// The error names a host that does not exist.
func TestUnknownHost(t *testing.T) {
	if got := unknownHost(t.Context(), "127.0.0.1:7233"); got != "" {
		t.Errorf("an address: %q", got)
	}
	if got := unknownHost(t.Context(), "no such host.invalid:7233"); got != "there is no host no such host.invalid: " {
		t.Errorf("no host: %q", got)
	}
}
