package install

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/registry/registrytest"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// online is a bench with a registry that has the provider ns/aa.
func online(t *testing.T, kind cliconfig.MethodKind) (*bench, *registrytest.Server, addr.Provider) {
	s := registrytest.New(t)
	p := addr.Provider{Host: s.Host, Namespace: "ns", Type: "aa"}
	for _, v := range []string{"1.0.0", "1.1.0"} {
		for _, pl := range []string{"linux_amd64", "darwin_arm64"} {
			s.AddProvider(t, "ns", "aa", v, pl, program(p, v+pl))
		}
	}
	b := newBench(t)
	b.Client = &http.Client{Transport: s.Transport()}
	b.Now = time.Now
	m := cliconfig.Method{Kind: kind, Retries: 3}
	if kind == cliconfig.NetworkMirror {
		m.Location = s.URL + "/mirror/"
		p.Host = "example.com"
	}
	b.Config.Installation.Methods = []cliconfig.Method{m}
	b.Config.Registry = cliconfig.Registry{Retries: 1, Timeout: time.Minute}
	return b, s, p
}

func TestDirect(t *testing.T) {
	b, s, p := online(t, cliconfig.Direct)
	var last Event
	b.Progress = func(e Event) {
		if e.Kind == Transfer {
			last = e
			return
		}
		b.events = append(b.events, e.Text())
	}
	out := b.mustInit(reqs(p, "~> 1.0"))
	b.said(fmt.Sprintf(`Finding %s versions matching "~> 1.0"...`, p), fmt.Sprintf("Installing %s v1.1.0...", p), fmt.Sprintf("Installed %s v1.1.0 (signed, key ID %s)", p, s.Key.ID))
	if last.Done == 0 || last.Done != last.Total {
		t.Error("progress:", last)
	}
	if exe, ds := out[p].Exe(context.Background()); ds.HasErrors() || filepath.Base(exe) != "terraform-provider-aa_v1.1.0" {
		t.Error(exe, ds.Err())
	}
	if hs := b.locked.Provider(p).Hashes; len(hs) != 3 || hs[0].Scheme() != "h1" || hs[1].Scheme() != "zh" {
		t.Error(hs)
	}
	want := []string{"/.well-known/terraform.json", "/providers/ns/aa/versions", "/providers/ns/aa/1.1.0/download/linux/amd64", "/files/ns/aa/1.1.0/SHA256SUMS", "/files/ns/aa/1.1.0/SHA256SUMS.sig", "/files/ns/aa/1.1.0/terraform-provider-aa_1.1.0_linux_amd64.zip"}
	if d := cmp.Diff(want, s.Requests()); d != "" {
		t.Error(d)
	}
	if h := s.Header("/providers/ns/aa/versions"); h.Get("X-Terraform-Version") != "1.12.6" {
		t.Error(h)
	}
	s.Forget()
	b.mustInit(reqs(p, "~> 1.0"))
	if len(s.Requests()) > 0 {
		t.Error("a second init asked", s.Requests())
	}
	b.fails(reqs(addr.Provider{Host: s.Host, Namespace: "ns", Type: "zz"}, ""), "was not found in any of the search locations")
	b.Platform = "plan9_amd64"
	b.WorkDir = t.TempDir()
	b.fails(reqs(p, ""), "does not have a package available for your current platform, plan9_amd64")
}

func TestDirectDefaultHost(t *testing.T) {
	b, s, _ := online(t, cliconfig.Direct)
	p := addr.Provider{Host: addr.DefaultHost, Namespace: "ns", Type: "aa"}
	b.Config.Hosts = map[string]map[string]any{addr.DefaultHost: {"providers.v1": s.URL + "/providers/"}}
	s.Unsigned = true
	b.mustInit(reqs(p, ""))
	if !slices.ContainsFunc(b.events, func(e string) bool { return strings.Contains(e, "Signature validation was skipped") }) {
		t.Error(b.events)
	}
	if hs := b.locked.Provider(p).Hashes; len(hs) != 4 {
		t.Error("the hashes of all platforms are missing:", hs)
	}
	b.Env = sys.Env{"OPENTOFU_ENFORCE_GPG_VALIDATION=true"}
	b.WorkDir, b.locked = t.TempDir(), nil
	b.fails(reqs(p, ""), "not signed with a valid signing key")
}

func TestCredentials(t *testing.T) {
	b, s, p := online(t, cliconfig.Direct)
	s.Token = "secret"
	b.fails(reqs(p, ""), "wants credentials")
	b.Config.Credentials = map[string]map[string]string{s.Host: {"token": "wrong"}}
	b.fails(reqs(p, ""), "does not accept the credentials")
	b.Config.EnvTokens = map[string]string{s.Host: "secret"}
	b.mustInit(reqs(p, ""))
	if h := s.Header("/files/ns/aa/1.1.0/SHA256SUMS"); h.Get("Authorization") != "" {
		t.Error("the token went to a download")
	}
	b.Config.EnvTokens, b.Config.Credentials = nil, nil
	helper := filepath.Join(t.TempDir(), "plugins", "terraform-credentials-x")
	write(t, helper, "#!/bin/sh\n[ \"$1 $2 $3\" = \"-a get "+s.Host+"\" ] && echo '{\"token\":\"secret\"}'\n")
	b.Config.Helper = &cliconfig.Helper{Name: "x", Args: []string{"-a"}}
	b.Config.Dir = filepath.Dir(filepath.Dir(helper))
	b.Run = sys.Run
	b.Env = sys.Env{"PATH=" + os.Getenv("PATH")}
	b.WorkDir, b.locked = t.TempDir(), nil
	b.mustInit(reqs(p, ""))
}

func TestNetworkMirror(t *testing.T) {
	b, s, p := online(t, cliconfig.NetworkMirror)
	s.Token = "mirror"
	b.Config.Credentials = map[string]map[string]string{s.Host: {"token": "mirror"}}
	_, ds := b.init(reqs(p, ""))
	if ds.HasErrors() || !strings.Contains(ds[0].Summary, "Incomplete lock file") {
		t.Fatal(ds.Err(), len(ds))
	}
	if !slices.Contains(b.events, "Installed example.com/ns/aa v1.1.0 (verified checksum)") || len(b.locked.Provider(p).Hashes) != 2 {
		t.Error(b.events, b.locked.Provider(p).Hashes)
	}
	b.Config.Installation.Methods[0].TrustAllHashes = true
	b.WorkDir, b.locked = t.TempDir(), nil
	b.mustInit(reqs(p, ""))
	if len(b.locked.Provider(p).Hashes) != 4 {
		t.Error(b.locked.Provider(p).Hashes)
	}
	s.NoHashes = true
	b.WorkDir, b.locked = t.TempDir(), nil
	b.mustInit(reqs(p, ""))
	if !slices.Contains(b.events, "Installed example.com/ns/aa v1.1.0 (unauthenticated)") {
		t.Error(b.events)
	}
	b.fails(reqs(addr.Provider{Host: "example.com", Namespace: "ns", Type: "zz"}, ""), "was not found")
}

func TestFaults(t *testing.T) {
	const pkg = "/files/ns/aa/1.1.0/terraform-provider-aa_1.1.0_linux_amd64.zip"
	stale := registrytest.NewKey(t, time.Now().Add(-48*time.Hour))
	other := registrytest.NewKey(t, time.Time{})
	type server = *registrytest.Server
	for _, c := range []struct {
		name  string
		fault func(s server, n int32, w http.ResponseWriter, r *http.Request) bool
		want  string // the expected error; "" for none
	}{
		{"busy for a while", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if n%2 == 1 {
				w.WriteHeader([]int{429, 500, 502, 503}[n%4])
				return true
			}
			return false
		}, ""},
		{"cut off", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == pkg && n < 8 && r.Header.Get("Range") == "" {
				w.Header().Set("Content-Length", "100000")
				_, _ = w.Write([]byte("PK"))
				panic(http.ErrAbortHandler)
			}
			return false
		}, ""},
		{"cut off always", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == pkg {
				w.Header().Set("Content-Length", "100000")
				panic(http.ErrAbortHandler)
			}
			return false
		}, "the server closed the connection"},
		{"slow", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/providers/ns/aa/versions" {
				<-r.Context().Done()
			}
			return false
		}, "no answer within"},
		{"wrong checksum", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == pkg {
				_, _ = w.Write(registrytest.Zip(t, "terraform-provider-aa_v1.1.0", "evil"))
				return true
			}
			return false
		}, "the checksum of the downloaded package is"},
		{"other list of checksums", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/SHA256SUMS") {
				fmt.Fprintf(w, "%064d  terraform-provider-aa_1.1.0_linux_amd64.zip\n", 0)
				return true
			}
			return false
		}, "but the registry says"},
		{"list without the file", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/SHA256SUMS") {
				fmt.Fprintf(w, "%064d  other.zip\n", 0)
				return true
			}
			return false
		}, "no SHA-256 hash for"},
		{"wrong signature", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".sig") {
				_, _ = w.Write(s.Key.Sign([]byte("something else")))
				return true
			}
			return false
		}, "signature"},
		{"signature of another", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".sig") {
				_, _ = w.Write(other.Sign(nil))
				return true
			}
			return false
		}, "unknown issuer"},
		{"no signature", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".sig") {
				w.WriteHeader(404)
				return true
			}
			return false
		}, "failed to retrieve cryptographic signature"},
		{"no keys", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			s.Unsigned = true
			return false
		}, "not signed with a valid signing key"},
		{"expired key", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			s.Key = stale
			return false
		}, ""},
		{"huge answer", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/versions") {
				for range 33 << 4 {
					if _, err := w.Write(make([]byte, 1<<16)); err != nil {
						break
					}
				}
				return true
			}
			return false
		}, "larger than allowed"},
		{"redirects in a circle", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				http.Redirect(w, r, r.URL.Path, http.StatusFound)
				return true
			}
			return false
		}, "stopped after 3 redirects"},
		{"no JSON", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/versions") {
				fmt.Fprint(w, "<html>")
				return true
			}
			return false
		}, "not valid JSON"},
		{"no registry", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(404)
			return true
		}, "does not offer a provider registry"},
		{"old protocol", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/versions") {
				fmt.Fprint(w, `{"versions":[{"version":"1.1.0","protocols":["4.0"],"platforms":[{"os":"linux","arch":"amd64"}]},{"version":"1.0.0","protocols":["5.0"]}]}`)
				return true
			}
			return false
		}, "the newest version that does is 1.0.0"},
		{"archive that leads out", func(s server, n int32, w http.ResponseWriter, r *http.Request) bool {
			if n == 1 {
				p := s.AddProvider(t, "ns", "aa", "2.0.0", "linux_amd64", "")
				p.Zip = registrytest.Zip(t, "../../terraform-provider-aa_v1.1.0", "evil")
			}
			return false
		}, "leads out of its directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, s, p := online(t, cliconfig.Direct)
			if c.name == "slow" {
				b.Config.Registry.Timeout = 300 * time.Millisecond
			}
			b.Config.Installation.Methods[0].Retries = 1
			var n atomic.Int32
			s.Fault = func(w http.ResponseWriter, r *http.Request) bool { return c.fault(s, n.Add(1), w, r) }
			if c.want != "" {
				b.fails(reqs(p, ""), c.want)
				if left, _ := filepath.Glob(filepath.Join(b.WorkDir, ".terraform/providers/*/*/*/*/.*")); len(left) > 0 {
					t.Error("left behind:", left)
				}
				return
			}
			_, ds := b.init(reqs(p, ""))
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			if expired := c.name == "expired key"; expired != (len(ds) > 0 && strings.Contains(ds[0].Detail, "has expired")) {
				t.Error(ds)
			}
		})
	}
}

// A directory without a lock file uses a cached package without downloading it again if the
// registry has its checksum.
func TestCachedPackageIsVouchedFor(t *testing.T) {
	b, s, p := online(t, cliconfig.Direct)
	b.Config.PluginCacheDir = t.TempDir()
	b.mustInit(reqs(p, ""))
	want := string(b.locked.Bytes())
	s.Forget()
	b.WorkDir, b.locked = t.TempDir(), nil
	b.mustInit(reqs(p, ""))
	if d := cmp.Diff(want, string(b.locked.Bytes())); d != "" {
		t.Error(d)
	}
	if slices.ContainsFunc(s.Requests(), func(r string) bool { return strings.HasSuffix(r, ".zip") }) {
		t.Error(s.Requests())
	}
	// Another program changes the cache.
	exe := filepath.Join(b.Config.PluginCacheDir, p.Host, "ns/aa/1.1.0/linux_amd64/terraform-provider-aa_v1.1.0")
	write(t, exe, "evil")
	b.WorkDir, b.locked = t.TempDir(), nil
	out := b.mustInit(reqs(p, ""))
	if path, ds := out[p].Exe(context.Background()); ds.HasErrors() || func() string { text, _ := os.ReadFile(path); return string(text) }() == "evil" {
		t.Error(path, ds.Err())
	}
}

func TestProtocols(t *testing.T) {
	for text, want := range map[string]bool{"5.0": true, "6.11": true, "5": true, "4.0": false, "7.0": false, "x": false} {
		if speaks([]string{text}) != want {
			t.Error(text)
		}
	}
}

// TestPeer compares lock files with those of OpenTofu, and uses each tool's installation
// with the other.
func TestPeer(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("TERRACE_TEST_TOFU names no binary to compare with")
	}
	m := t.TempDir()
	unpacked(t, m, aa, "linux_amd64", "1.0.0", "1.5.3", "2.0.0-beta1")
	packed(t, m, bb, "linux_amd64", "0.9.0")
	unpacked(t, m, ex, "linux_amd64", "0.1.0")
	s := registrytest.New(t)
	for _, pl := range []string{"linux_amd64", "darwin_arm64"} {
		s.AddProvider(t, "ns", "dd", "1.1.0", pl, program(aa, pl))
	}
	dd := addr.Provider{Host: s.Host, Namespace: "ns", Type: "dd"}
	de := addr.Provider{Host: addr.DefaultHost, Namespace: "ns", Type: "dd"}
	nm := addr.Provider{Host: "mirrored.example.com", Namespace: "ns", Type: "dd"}
	rc := fmt.Sprintf("host %q {\n services = { \"providers.v1\" = %q }\n}\nprovider_installation {\n filesystem_mirror {\n path = %q\n include = [\"hashicorp/*\", \"example.com/*/*\"]\n }\n network_mirror {\n url = %q\n include = [\"mirrored.example.com/*/*\"]\n }\n direct {\n include = [%q, \"ns/*\"]\n }\n}\n",
		addr.DefaultHost, s.URL+"/providers/", m, s.URL+"/mirror/", s.Host+"/*/*")
	main := fmt.Sprintf("terraform {\n required_providers {\n aa = {\n source = \"hashicorp/aa\"\n version = \"~> 1.0, != 1.2\"\n }\n bb = {\n source = \"hashicorp/bb\"\n }\n ex = {\n source = %q\n version = \">=0.1\"\n }\n dd = {\n source = %q\n }\n de = {\n source = %q\n }\n nm = {\n source = %q\n }\n }\n}\n", ex, dd, de, nm)
	all := reqs(aa, "~> 1.0, != 1.2", bb, "", ex, ">=0.1", dd, "", de, "", nm, "")
	ca := s.CAFile(t)
	for _, cache := range []string{"", t.TempDir()} {
		b := newBench(t)
		write(t, filepath.Join(b.WorkDir, "rc"), rc)
		write(t, filepath.Join(b.WorkDir, "main.tf"), main)
		env := sys.Env{"TF_CLI_CONFIG_FILE=" + filepath.Join(b.WorkDir, "rc"), "TF_PLUGIN_CACHE_DIR=" + cache}
		conf, ds := cliconfig.Load(nil, env, "", b.WorkDir)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		b.Config, b.Client = conf, &http.Client{Transport: s.Transport()}
		peer := func() string {
			t.Helper()
			cmd := exec.Command(tofu, "init", "-no-color")
			cmd.Dir = b.WorkDir
			cmd.Env = append(append(os.Environ(), env...), "SSL_CERT_FILE="+ca)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return string(out)
		}
		lockFile := filepath.Join(b.WorkDir, lock.Name)
		peer()
		theirs, err := os.ReadFile(lockFile)
		if err != nil {
			t.Fatal(err)
		}
		if b.locked, ds = lock.Read(nil, lockFile); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		pkgs, ds := Select(context.Background(), all, b.locked, b.Options)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		for _, p := range pkgs {
			if _, ds := p.Exe(context.Background()); ds.HasErrors() {
				t.Error(ds.Err())
			}
		}
		b.mustInit(all) // already installed
		if d := cmp.Diff(string(theirs), string(b.locked.Bytes())); d != "" {
			t.Error(d)
		}
		// And the reverse, from an empty directory.
		if err := os.RemoveAll(filepath.Join(b.WorkDir, ".terraform")); err != nil {
			t.Fatal(err)
		}
		b.locked = nil
		b.mustInit(all)
		if d := cmp.Diff(string(theirs), string(b.locked.Bytes())); d != "" {
			t.Error(d)
		}
		if err := lock.Write(lockFile, b.locked); err != nil {
			t.Fatal(err)
		}
		if out := peer(); strings.Contains(out, "Installing") {
			t.Error(out)
		}
		if after, _ := os.ReadFile(lockFile); string(after) != string(theirs) {
			t.Errorf("%s", after)
		}
	}
}

func TestLockPlatformsAndMirror(t *testing.T) {
	b, s, p := online(t, cliconfig.Direct)
	var got []string
	note := func(f Fetched) {
		got = append(got, fmt.Sprintf("%s %s %t %t", f.Version, f.Platform, f.New, f.First))
	}
	ctx := context.Background()
	o := b.Options.DirectOnly()
	next, ds := LockPlatforms(ctx, Wanted{reqs(p, "~> 1.0"), nil, []string{"linux_amd64", "darwin_arm64"}}, o, note)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if d := cmp.Diff([]string{"1.1.0 linux_amd64 true true", "1.1.0 darwin_arm64 true true"}, got); d != "" {
		t.Error(d)
	}
	if hs := next.Provider(p).Hashes; len(hs) != 4 || next.Provider(p).Constraints != "~> 1.0" {
		t.Error(hs)
	}
	got = nil
	again, ds := LockPlatforms(ctx, Wanted{reqs(p, "~> 1.0"), next, []string{"darwin_arm64"}}, o, note)
	if ds.HasErrors() || !again.Equal(next) || got[0] != "1.1.0 darwin_arm64 false false" {
		t.Error(ds.Err(), got)
	}
	for platform, want := range map[string]string{"plan9_amd64": "is not available for plan9_amd64", "linux": "not a valid target platform"} {
		if _, ds := LockPlatforms(ctx, Wanted{reqs(p, ""), next, []string{platform}}, o, nil); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), want) {
			t.Error(ds.Err())
		}
	}
	dir := filepath.Join(t.TempDir(), "mirror")
	if ds := Mirror(ctx, Wanted{reqs(p, ""), next, []string{"linux_amd64", "darwin_arm64"}}, dir, o); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	base := filepath.Join(dir, s.Host, "ns", "aa")
	index, _ := os.ReadFile(filepath.Join(base, "index.json"))
	if d := cmp.Diff("{\n  \"versions\": {\n    \"1.1.0\": {}\n  }\n}", string(index)); d != "" {
		t.Error(d)
	}
	if doc, err := os.ReadFile(filepath.Join(base, "1.1.0.json")); err != nil || strings.Count(string(doc), "h1:") != 2 || !strings.Contains(string(doc), `"url": "terraform-provider-aa_1.1.0_linux_amd64.zip"`) {
		t.Errorf("%s %v", doc, err)
	}
	// The mirrored packages match the lock file.
	m := newBench(t, dir)
	m.locked = next
	m.mustInit(reqs(p, "~> 1.0"))
	if !m.locked.Equal(next) {
		t.Errorf("%s", m.locked.Bytes())
	}
}

func FuzzSums(f *testing.F) {
	f.Add(strings.Repeat("0", 64) + "  a.zip\n")
	f.Add("\n\nx y z\n")
	f.Fuzz(func(t *testing.T, doc string) {
		sums, err := parseSums(doc)
		if err != nil {
			return
		}
		for name, sum := range sums {
			if name == "" || len(sum) != 64 {
				t.Errorf("%q: %q", name, sum)
			}
		}
	})
}
