package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// The timed estate is planned as expected, in one process and, if there is a server, on
// workers. The measurements include all processes, and no run is faster than its provider
// calls.
func TestWorkers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: processes are ended by interrupts")
	}
	w := &Workers{
		Terrace: testkit.Terrace(t), Server: os.Getenv("TERRACE_TEST_TEMPORAL_SERVER"), Provider: testkit.TestProvider(t, 6),
		Dir: t.TempDir(), Units: 6, Call: 100 * time.Millisecond, Slots: 2, At: 4,
	}
	if err := w.Write(); err != nil {
		t.Fatal(err)
	}
	one, err := w.One(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if one.Ideal != 200*time.Millisecond || one.Wall < one.Ideal || one.CPU() == 0 {
		t.Errorf("in one process: %+v", one)
	}
	if w.Server == "" {
		t.Skip("SKIP: TERRACE_TEST_TEMPORAL_SERVER names no server to start")
	}
	if got := filepath.Dir(testkit.Worker(t)); got != filepath.Dir(w.Terrace) {
		t.Fatalf("terrace-worker is in %s", got)
	}
	on, err := w.On(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if on.Ideal != one.Ideal || on.Wall < on.Ideal || len(on.Workers) != 2 || on.Server.CPU == 0 || on.Client.CPU == 0 || on.CPU() <= on.Client.CPU {
		t.Errorf("on workers: %+v", on)
	}
}
