package servers

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"syscall"
	"testing"
)

// An AzureServer is the emulator of Azure Storage, or its stand-in, with one account. It is
// reached by its public name through a tunnel.
type AzureServer struct {
	*Tunnel
	Account, Key, Suffix string
	Stand                *BlobServer // nil for the emulator
}

// Blobs starts the stand-in with containers.
func Blobs(t testing.TB, containers ...string) *AzureServer {
	b := NewBlobs(containers...)
	s := &AzureServer{Account: b.Account, Key: b.Key, Suffix: "core.windows.net", Stand: b}
	s.Tunnel = NewTunnel(t, b, s.Account+".blob."+s.Suffix)
	return s
}

// Azure starts the emulator.
func Azure(t testing.TB) *AzureServer {
	path := program(t, "azurite-blob", "npm install azurite")
	s := &AzureServer{Account: "acmestates", Key: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 64)), Suffix: "core.windows.net"}
	t.Setenv("AZURITE_ACCOUNTS", s.Account+":"+s.Key)
	port := freePort(t)
	run(t, nil, syscall.SIGTERM, dial("tcp", local(port)), path, "--blobHost", "127.0.0.1", "--blobPort", fmt.Sprint(port), "--location", folder(t, nil), "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	target := &url.URL{Scheme: "http", Host: local(port)}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // its first part is the account
	}}
	s.Tunnel = NewTunnel(t, http.Handler(proxy), s.Account+".blob."+s.Suffix)
	return s
}
