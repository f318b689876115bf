package installer

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/net/registry/registrytest"
	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// TestMain runs as one init process if a test started it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("INSTALLER_TEST_DIR"); dir != "" {
		f := &fetch.Fetcher{Dir: os.Getenv("INSTALLER_TEST_CACHE"), WorkDir: dir, Now: time.Now, Client: &transfer.Client{Retries: 3}}
		if _, ds := Install(context.Background(), dir, Options{Packages: f}); ds.HasErrors() {
			fmt.Fprintln(os.Stderr, ds.Err())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var processes = flag.Int("processes", 40, "how many processes install at once")

// If many processes use one cache concurrently, all succeed, and the package is downloaded
// once.
func TestManyProcesses(t *testing.T) {
	zip := registrytest.Zip(t, "main.tf", "output \"x\" {\n  value = 1\n}\n")
	var n atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		_, _ = w.Write(zip)
	}))
	defer srv.Close()
	cache, work := t.TempDir(), t.TempDir()
	var wg sync.WaitGroup
	for i := range *processes {
		dir := filepath.Join(work, fmt.Sprint(i))
		unpack(t, dir, "-- main.tf --\nmodule \"a\" {\n  source = \""+srv.URL+"/m.zip\"\n}\nmodule \"b\" {\n  source = \""+srv.URL+"/m.zip\"\n}\n")
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "INSTALLER_TEST_DIR="+dir, "INSTALLER_TEST_CACHE="+cache)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%d: %v\n%s", i, err, out)
			}
			for _, call := range []string{"a", "b"} {
				text, err := os.ReadFile(filepath.Join(dir, ".terraform/modules", call, "main.tf"))
				if err != nil || !strings.Contains(string(text), "value = 1") {
					t.Errorf("%d: %s: %q %v", i, call, text, err)
				}
			}
		})
	}
	wg.Wait()
	if n.Load() != 1 {
		t.Errorf("the package was fetched %d times", n.Load())
	}
	if left, _ := os.ReadDir(filepath.Join(cache, "tmp")); len(left) > 0 {
		t.Errorf("%d temporary directories are left in the cache", len(left))
	}
}
