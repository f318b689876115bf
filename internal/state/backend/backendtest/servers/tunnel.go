package servers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A Tunnel is a proxy that passes connections to some hosts of the internet to a handler,
// over TLS with a certificate of its own authority. Other hosts are not reachable.
type Tunnel struct {
	Proxy  string // for HTTPS_PROXY
	CAFile string // for SSL_CERT_FILE

	pool *x509.CertPool
}

// NewTunnel starts a proxy for the given hosts.
func NewTunnel(t testing.TB, handler http.Handler, hosts ...string) *Tunnel {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: hosts,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	target := httptest.NewUnstartedServer(handler)
	target.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	target.StartTLS()
	t.Cleanup(target.Close)

	known := map[string]bool{}
	for _, h := range hosts {
		known[h] = true
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, _ := net.SplitHostPort(r.Host); r.Method != http.MethodConnect || !known[host] {
			http.Error(w, "this proxy does not lead there: "+r.Host, http.StatusBadGateway)
			return
		}
		there, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer there.Close()
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
		var both sync.WaitGroup
		for _, pair := range [][2]net.Conn{{here, there}, {there, here}} {
			both.Go(func() {
				io.Copy(pair[0], pair[1])
				pair[0].(*net.TCPConn).CloseWrite()
			})
		}
		both.Wait()
	}))
	t.Cleanup(proxy.Close)

	out := &Tunnel{Proxy: proxy.URL, CAFile: filepath.Join(t.TempDir(), "ca.pem"), pool: x509.NewCertPool()}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	out.pool.AppendCertsFromPEM(text)
	if err := os.WriteFile(out.CAFile, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return out
}

// Transport returns a transport that uses the tunnel.
func (u *Tunnel) Transport(t testing.TB) *http.Transport {
	t.Helper()
	proxy, err := url.Parse(u.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	out := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: u.pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(out.CloseIdleConnections)
	return out
}
