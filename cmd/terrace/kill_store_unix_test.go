//go:build unix

package main_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

var storeKills = flag.Int("storekills", 0, "how often an apply is killed whose journal is in the store, and whose machine is lost, in each kind of store; 0: in one of them, until a kill shows something")

const inStore = `
terraform {
  backend "s3" {
    bucket         = "states"
    key            = "app.tfstate"
    region         = "us-east-1"
    use_path_style = true
    use_lockfile   = true
    endpoints      = { s3 = "%s" }
  }
}
`

// killStores returns functions that start the stores with journals and return the block of
// their backend. Other settings are in the environment.
func killStores() map[string]func(t *testing.T) string {
	block := func(kind, format string, args ...any) string {
		return fmt.Sprintf("terraform {\n  backend %q {\n%s\n  }\n}\n", kind, fmt.Sprintf(format, args...))
	}
	through := func(t *testing.T, tunnel *servers.Tunnel) {
		t.Setenv("HTTPS_PROXY", tunnel.Proxy)
		t.Setenv("SSL_CERT_FILE", tunnel.CAFile)
	}
	return map[string]func(t *testing.T) string{
		"s3": func(t *testing.T) string {
			s := servers.AWS(t)
			s.Bucket("states")
			t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
			t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			return fmt.Sprintf(inStore, s.URL)
		},
		"gcs": func(t *testing.T) string {
			s := servers.GCS(t)
			through(t, s.Tunnel)
			t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", s.Token)
			return block("gcs", "bucket = %q", s.Bucket)
		},
		"azurerm": func(t *testing.T) string {
			s := servers.Blobs(t, "states")
			through(t, s.Tunnel)
			t.Setenv("ARM_ACCESS_KEY", s.Key)
			return block("azurerm", "storage_account_name = %q\ncontainer_name = \"states\"\nkey = \"app\"", s.Account)
		},
		"consul": func(t *testing.T) string {
			return block("consul", "path = \"team/app\"\naddress = %q", servers.Consul(t).Address)
		},
		"kubernetes": func(t *testing.T) string {
			s := servers.Kubernetes(t, "planted")
			t.Setenv("KUBE_TOKEN", "planted")
			t.Setenv("KUBE_CLUSTER_CA_CERT_DATA", s.CA)
			return block("kubernetes", "secret_suffix = \"app\"\nhost = %q", s.URL)
		},
		"pg": func(t *testing.T) string {
			t.Setenv("PG_CONN_STR", servers.Postgres(t))
			return block("pg", "")
		},
		"etcdv3": func(t *testing.T) string {
			return block("etcdv3", "endpoints = [%q]\nprefix = \"app/\"", servers.Etcd(t))
		},
		"cos": func(t *testing.T) string {
			s := servers.COS(t)
			through(t, s.Tunnel)
			t.Setenv("TENCENTCLOUD_SECRET_ID", s.ID)
			t.Setenv("TENCENTCLOUD_SECRET_KEY", s.Key)
			return block("cos", "bucket = %q\nregion = %q", s.Bucket, s.Region)
		},
		"oss": func(t *testing.T) string {
			s := servers.OSS(t)
			t.Setenv("ALICLOUD_ACCESS_KEY", s.ID)
			t.Setenv("ALICLOUD_SECRET_KEY", s.Key)
			return block("oss", "bucket = %q\nendpoint = %q\ntablestore_endpoint = %[2]q\ntablestore_table = %[3]q", s.Bucket, s.URL, s.Table)
		},
	}
}

// TestStoreKill9 kills applies that store their journal next to the state, in each kind of
// store that supports it, and loses their machine: the next run starts in an empty
// directory. Every object for which the provider responded before the next call must be in
// the state then, and other begun calls must be reported.
func TestStoreKill9(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes a while; run without -short")
	}
	terrace, plugin := testkit.Terrace(t), testkit.TestProvider(t, 6)
	t.Setenv("TERRACE_JOURNAL", "store")
	var all int
	for name, start := range killStores() {
		if *storeKills == 0 && name != "consul" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			config := start(t)
			root := t.TempDir()
			record := filepath.Join(root, "record")
			machines := 0
			machine := func() *killer {
				machines++
				k := &killer{t: t, terrace: terrace, dir: filepath.Join(root, fmt.Sprint(machines))}
				k.must(os.Mkdir(k.dir, 0o755))
				k.must(os.WriteFile(filepath.Join(k.dir, "backend.tf"), []byte(config), 0o644))
				k.setUp(plugin)
				k.record = record
				k.must(os.WriteFile(filepath.Join(k.dir, "main.tf"), fmt.Appendf(nil, killConfig, k.record, 2, 25), 0o644))
				return k
			}
			k := machine()
			var kept, named, done, n int
			for n < *storeKills || *storeKills == 0 && kept == 0 && n < 20 { // more kills may be needed by chance
				killed := k.apply(1, time.Duration(rand.IntN(700))*time.Millisecond)
				if killed {
					n++
					k.must(os.RemoveAll(k.dir))
					k = machine()
					k.recover()
				}
				a, b := k.check(killed, 1)
				kept, named = kept+a, named+b
				if k.recovered = nil; !killed {
					done++
					k.reset()
				}
			}
			t.Logf("%d kills with the machine lost, %d applies ended; %d begun objects found in state, %d named instead", n, done, kept, named)
			all += kept
		})
	}
	if all == 0 && !t.Failed() {
		t.Error("the kills came at moments that show nothing")
	}
}

// recover plans on another machine. Like a user, it releases a remaining lock by its ID.
func (k *killer) recover() {
	k.t.Helper()
	for range 3 { // some locks have several parts
		out, err := k.command("plan", "-refresh=false", "-input=false", "-no-color").CombinedOutput()
		if err == nil {
			k.recovered = out
			return
		}
		_, rest, locked := strings.Cut(string(out), "ID:")
		if !locked {
			k.t.Fatalf("plan: %v\n%s", err, out)
		}
		id := strings.Fields(rest)[0]
		if out, err := k.command("force-unlock", "-force", id).CombinedOutput(); err != nil {
			k.t.Logf("force-unlock %s: %s", id, out) // the lock may have expired meanwhile
		}
	}
	k.t.Fatal("the lock cannot be released")
}

// TestStoreJournalIsGrouped counts the requests of an apply with its journal in a slow
// store. Records are sent in groups, and no call waits unnecessarily.
func TestStoreJournalIsGrouped(t *testing.T) {
	const objects, delay = 50, 50 * time.Millisecond
	terrace, plugin := testkit.Terrace(t), testkit.TestProvider(t, 6)
	service := servers.NewAWS()
	service.Bucket("states")
	var mu sync.Mutex
	var sent, segments int
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(delay)
		mu.Lock()
		sent++
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/journal/") {
			segments++
		}
		mu.Unlock()
		service.Answer(w, r)
	}))
	defer slow.Close()
	k := &killer{t: t, terrace: terrace, dir: t.TempDir()}
	k.must(os.WriteFile(filepath.Join(k.dir, "backend.tf"), fmt.Appendf(nil, inStore, slow.URL), 0o644))
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	k.setUp(plugin)
	k.must(os.WriteFile(filepath.Join(k.dir, "main.tf"), fmt.Appendf(nil, killConfig, k.record, 2, objects), 0o644))
	for _, journal := range []string{"", "store"} {
		sent, segments = 0, 0
		begin := time.Now()
		c := k.command("apply", "-auto-approve", "-input=false", "-no-color")
		c.Env = append(c.Env, "TERRACE_JOURNAL="+journal)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("apply: %v\n%s", err, out)
		}
		t.Logf("journal %q: %d requests, %d of them segments, in %v", journal, sent, segments, time.Since(begin).Round(time.Millisecond))
		if journal == "" && segments != 0 || journal == "store" && (segments < 2 || segments >= objects) {
			t.Errorf("journal %q: %d segments of %d objects", journal, segments, objects)
		}
		k.reset()
	}
}
