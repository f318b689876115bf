package testkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// handshake starts a plugin and returns its first line.
func handshake(t *testing.T, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "p") // a short name, because it contains the plugin's socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = []string{"TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2", "PLUGIN_PROTOCOL_VERSIONS=5,6", "TMPDIR=" + dir}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, _ := out.Read(buf)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return string(buf[:n])
}

func TestTimeProviderIsAPlugin(t *testing.T) {
	if got := handshake(t, TimeProvider(t)); !strings.HasPrefix(got, "1|5|unix|") {
		t.Errorf("first line %q", got)
	}
}

func TestTestProviderSpeaksBothProtocols(t *testing.T) {
	for protocol, want := range map[int]string{5: "1|5|unix|", 6: "1|6|unix|"} {
		if got := handshake(t, TestProvider(t, protocol)); !strings.HasPrefix(got, want) {
			t.Errorf("protocol %d: first line %q", protocol, got)
		}
	}
}

func TestBuiltOnce(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	inside, builds := 0, 0
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			err := once(t.Context(), dir, func(context.Context) error {
				mu.Lock()
				inside++
				builds++
				if inside > 1 {
					t.Error("two builds at once")
				}
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				inside--
				mu.Unlock()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if builds != 5 {
		t.Errorf("%d builds", builds)
	}
}

func TestVariable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "provider")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(TimeVariable, path)
	if got := TimeProvider(t); got != path {
		t.Errorf("got %q", got)
	}
}

// Without a proxy the error contains the reason.
func TestUnreachable(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	withoutTelemetry(t)
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOCACHE", t.TempDir())
	if path, err := timeProvider(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be downloaded") {
		t.Errorf("got %q, %v", path, err)
	}
}

// withoutTelemetry disables the telemetry of a go command in a new home directory.
// Otherwise a separate process writes to the directory after the command has ended, and the
// directory cannot be removed.
func withoutTelemetry(t *testing.T) {
	t.Helper()
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(config, "go", "telemetry")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mode"), []byte("off"), 0o600); err != nil {
		t.Fatal(err)
	}
}
