package install

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/net/registry/registrytest"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// TestMain runs one init process if the environment requests it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("INSTALL_TEST_DIR"); dir != "" {
		if err := childInit(dir, os.Getenv("INSTALL_TEST_CACHE"), os.Getenv("INSTALL_TEST_HOST")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func childInit(dir, cache, host string) error {
	conf := &cliconfig.Config{PluginCacheDir: cache, Installation: &directInstallation, Registry: cliconfig.Registry{Retries: 3, DownloadRetries: 3, Timeout: 5 * time.Minute}}
	p := addr.Provider{Host: host, Namespace: "ns", Type: "aa"}
	patient := http.DefaultTransport.(*http.Transport).Clone()
	patient.TLSHandshakeTimeout = conf.Registry.Timeout // many processes on a busy machine
	o := Options{Config: conf, WorkDir: dir, Client: &http.Client{Transport: patient}}
	out, next, ds := Install(context.Background(), reqs(p, ""), nil, o)
	if err := ds.Err(); err != nil {
		return err
	}
	if _, ds := out[p].Exe(context.Background()); ds.HasErrors() {
		return ds.Err()
	}
	return lock.Write(filepath.Join(dir, lock.Name), next)
}

var processes = flag.Int("processes", 40, "how many processes install at once")

// Many processes use one plugin cache concurrently. All succeed with equal results, and the
// cache is intact.
func TestManyProcesses(t *testing.T) {
	s := registrytest.New(t)
	p := addr.Provider{Host: s.Host, Namespace: "ns", Type: "aa"}
	s.AddProvider(t, "ns", "aa", "1.0.0", new(Options).platform().String(), strings.Repeat("program ", 100_000))
	cache, ca := t.TempDir(), s.CAFile(t)
	n := *processes
	work := t.TempDir()
	var wg sync.WaitGroup
	for i := range n {
		dir := filepath.Join(work, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "INSTALL_TEST_DIR="+dir, "INSTALL_TEST_CACHE="+cache, "INSTALL_TEST_HOST="+s.Host, "SSL_CERT_FILE="+ca)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
	var first string
	for i := range n {
		text, err := os.ReadFile(filepath.Join(work, fmt.Sprint(i), lock.Name))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = string(text)
		}
		if string(text) != first {
			t.Errorf("%d has another lock file:\n%s", i, text)
		}
	}
	downloads := 0
	for _, r := range s.Requests() {
		if strings.HasSuffix(r, ".zip") {
			downloads++
		}
	}
	if downloads != 1 {
		t.Errorf("the package was downloaded %d times", downloads)
	}
	var names []string
	err := filepath.WalkDir(filepath.Join(cache, p.Host), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, d.Name())
		}
		return err
	})
	if err != nil || len(names) != 3 { // the program, the lock and the note
		t.Error(names, err)
	}
}
