//go:build unix

package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	otherKey      = "TERRACE_RUN_KEY=YW5vdGhlciBrZXkgb2YgdGhpcnR5LXR3byBieXRlcyE="
	sealedModule  = "variable \"in\" { type = string }\nresource \"terraform_data\" \"x\" { input = var.in }\noutput \"out\" { value = var.in }\nvariable \"given\" { default = \"\" }\noutput \"given\" {\n  value     = var.given\n  sensitive = true\n}\n"
	sealedBackend = "remote_state {\n  backend = \"local\"\n  config  = { path = %q }\n  generate = { path = \"backend.tf\", if_exists = \"overwrite_terragrunt\" }\n}\n"
)

// The server is behind TLS and requires client certificates. The CLI configuration contains
// the settings for the command and the workers. A worker with another key uses a queue of
// the same name. It gets no tasks, and does not make any run fail. Outputs, variables and
// error texts are not readable in the server's database or in the file store.
func TestSealedRun(t *testing.T) {
	const secret = "planted-secret-of-the-run"
	k := newTravelers(t)
	if k.server.program == "" {
		t.Skipf("SKIP: %s names no program whose database could be looked into", programVariable)
	}
	front := newTLSFront(t, k.server.address)
	k.write(map[string]string{
		"rc": fmt.Sprintf("temporal {\n  address = %q\n  namespace = %q\n  queue = %q\n  blobs = %q\n  tls_cert = %q\n  tls_key = %q\n  tls_ca = %q\n}\n",
			front.address, k.namespace, k.queue, k.blobs, front.path("client.pem"), front.path("client.key"), front.path("ca.pem")),
		"estate/m/main.tf":        sealedModule,
		"estate/a/terragrunt.hcl": "terraform { source = \"../m\" }\ninputs = { in = \"" + secret + "\" }\n" + fmt.Sprintf(sealedBackend, filepath.Join(k.dir, "states/a")),
		"estate/b/terragrunt.hcl": "terraform { source = \"../m\" }\ndependency \"a\" { config_path = \"../a\" }\ninputs = { in = dependency.a.outputs.out }\n" + fmt.Sprintf(sealedBackend, filepath.Join(k.dir, "states/b")),
		"estate/c/terragrunt.hcl": "terraform { source = \"../m\" }\ndependency \"a\" { config_path = \"../a\" }\ninputs = { in = run_cmd(\"sh\", \"-c\", \"echo ${dependency.a.outputs.out} >&2; exit 1\") }\n" + fmt.Sprintf(sealedBackend, filepath.Join(k.dir, "states/c")),
	})
	env := append(slices.DeleteFunc(slices.Clone(k.env), func(kv string) bool { return strings.HasPrefix(kv, "TF_CLI_CONFIG_FILE=") }),
		"TF_CLI_CONFIG_FILE="+filepath.Join(k.dir, "rc"), "TF_VAR_given="+secret)
	run := func(env []string, args ...string) (string, error) {
		c := k.command(args...)
		c.Dir, c.Env = filepath.Join(k.dir, "estate"), env
		out, err := c.CombinedOutput()
		return string(out), err
	}
	begin := func(env []string, dir string) {
		c := k.command("worker", "--dir", filepath.Join(k.dir, dir))
		c.Env = env
		k.must(c.Start())
		t.Cleanup(func() {
			k.signal(c, syscall.SIGKILL)
			_ = c.Wait()
		})
	}
	begin(append(slices.Clone(env), otherKey), "others")
	time.Sleep(2 * time.Second) // so that it starts first
	begin(env, "ours")
	for range 3 {
		out, err := run(env, "run", "--all", "--non-interactive", "--on", "temporal", "apply", "--queue-exclude-dir", "c")
		if err != nil || !strings.Contains(out, "Succeeded") {
			t.Fatalf("apply: %v\n%s", err, out)
		}
	}
	if out, err := run(env, "run", "--all", "--non-interactive", "--on", "temporal", "apply"); err == nil {
		t.Errorf("what cannot be applied was:\n%s", out)
	}
	if out, err := run(env, "run", "--on", "temporal", "list"); err != nil || !strings.Contains(out, "terrace-apply-") {
		t.Errorf("list: %v\n%s", err, out)
	}
	without := slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, "TF_CLI_CONFIG_FILE=") })
	if out, err := run(append(without, "TERRACE_TEMPORAL_TLS_CA="+front.path("ca.pem")), "run", "--all", "--on", "temporal://"+front.address+"/"+k.namespace+"/"+k.queue, "plan"); err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "did not begin: the Temporal server at "+front.address+" cannot be reached") {
		t.Errorf("without a certificate: %v\n%s", err, out)
	}
	k.server.kill()
	forms := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("x" + secret))[4:20], base64.StdEncoding.EncodeToString([]byte("xx" + secret))[4:20]}
	forms[1] = forms[1][:20]
	looked := 0
	look := func(path string) {
		text, err := os.ReadFile(path)
		k.must(err)
		looked++
		for _, form := range forms {
			if bytes.Contains(text, []byte(form)) {
				t.Errorf("%s holds the secret in the clear, as %q", path, form)
			}
		}
	}
	found := false
	for _, suffix := range []string{"", "-wal"} {
		if text, err := os.ReadFile(k.server.db + suffix); err == nil {
			look(k.server.db + suffix)
			found = found || bytes.Contains(text, []byte("terrace-apply-"))
		}
	}
	if !found {
		t.Error("the server's database holds no run: this test shows nothing")
	}
	k.must(filepath.WalkDir(k.blobs, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			look(path)
		}
		return err
	}))
	if looked < 5 {
		t.Errorf("%d files were looked at", looked)
	}
}

// tlsFront is a TLS proxy in front of a server.
type tlsFront struct{ address, dir string }

func (f *tlsFront) path(name string) string { return filepath.Join(f.dir, name) }

func newTLSFront(t *testing.T, to string) *tlsFront {
	t.Helper()
	f := &tlsFront{dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for n, name := range []string{"ca", "server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(n + 1)), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if ca == nil {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
			ca, caKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
		must(err)
		if n == 0 {
			ca, err = x509.ParseCertificate(der)
			must(err)
		}
		private, err := x509.MarshalECPrivateKey(key)
		must(err)
		must(os.WriteFile(f.path(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		must(os.WriteFile(f.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
	}
	pair, err := tls.LoadX509KeyPair(f.path("server.pem"), f.path("server.key"))
	must(err)
	clients := x509.NewCertPool()
	clients.AddCert(ca)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, NextProtos: []string{"h2"}})
	must(err)
	f.address = l.Addr().String()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				if c.(*tls.Conn).Handshake() != nil {
					return
				}
				there, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer there.Close()
				mu.Lock()
				open = append(open, c, there)
				mu.Unlock()
				wg.Go(func() {
					_, _ = io.Copy(there, c)
					_ = there.Close()
				})
				_, _ = io.Copy(c, there)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return f
}
