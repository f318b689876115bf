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

	"github.com/terrace-iac/terrace/internal/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/testkit"
)

var storeKills = flag.Int("storekills", 1, "how often an apply is killed whose journal is in the store, and whose machine is lost")

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

// TestStoreKill9 kills applies that keep their journal beside the state, and loses their
// machine: the next run starts in an empty folder. Whatever the provider answered before
// the next call must be in state then, and what was begun and is not must be named.
func TestStoreKill9(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes a while; run without -short")
	}
	terrace, plugin := testkit.Terrace(t), testkit.TestProvider(t, 6)
	service := servers.AWS(t)
	service.Bucket("states")
	root := t.TempDir()
	record := filepath.Join(root, "record")
	machines := 0
	machine := func() *killer {
		machines++
		k := &killer{t: t, terrace: terrace, dir: filepath.Join(root, fmt.Sprint(machines))}
		k.must(os.Mkdir(k.dir, 0o755))
		k.must(os.WriteFile(filepath.Join(k.dir, "backend.tf"), fmt.Appendf(nil, inStore, service.URL), 0o644))
		t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
		t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
		t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
		t.Setenv("TERRACE_JOURNAL", "store")
		k.setUp(plugin)
		k.record = record
		k.must(os.WriteFile(filepath.Join(k.dir, "main.tf"), fmt.Appendf(nil, killConfig, k.record, 2, 25), 0o644))
		return k
	}
	k := machine()
	var kept, named, done, n int
	for n < *storeKills {
		killed := k.apply(1, time.Duration(rand.IntN(700))*time.Millisecond)
		if killed {
			n++
			k.must(os.RemoveAll(k.dir))
			k = machine()
			service.Drop("states", "app.tfstate.tflock") // somebody releases the lock of the lost machine
			k.first = []string{"plan", "-refresh=false", "-input=false", "-no-color"}
		}
		a, b := k.check(killed, 1)
		kept, named = kept+a, named+b
		if k.first = nil; !killed {
			done++
			k.reset()
		}
	}
	t.Logf("%d kills with the machine lost, %d applies ended; %d begun objects found in state, %d named instead", n, done, kept, named)
	if kept == 0 {
		t.Error("the kills came at moments that show nothing")
	}
}

// TestStoreJournalIsGrouped counts what an apply sends that keeps its journal in a slow
// store: records go there in groups, and nothing waits that needs not.
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
