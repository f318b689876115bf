package rpc_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/terrace-iac/terrace/internal/provider/rpc"
)

// Reaching the limit of open files is reported as a message. The test sets the limit in a
// separate process.
func TestStartWithoutFiles(t *testing.T) {
	const inside = "TEST_WITHOUT_FILES"
	o := options(t, 6)
	if os.Getenv(inside) == "" {
		c := exec.Command(o.Path, "-test.run", "^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: usual.Max}); err != nil {
		t.Fatal(err)
	}
	_, ds := rpc.Launch(t.Context(), o)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	wantError(t, ds, rpc.CodeStart, "too many open files")
}
