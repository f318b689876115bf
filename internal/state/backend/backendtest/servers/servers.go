// Package servers starts services for tests of backends: real ones if they are installed,
// and stand-ins based on the documented APIs. All of them listen on the loopback address
// and end with the test.
//
// Main functions: Postgres and Etcd, which run the real servers; HTTP, AWS, Consul,
// Kubernetes, COS and OSS, which are stand-ins; and Tofu, for comparison. The one rule: a
// missing program skips the test, with the reason.
package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TofuVariable is the environment variable with the path of OpenTofu, for tests that run
// it.
const TofuVariable = "TERRACE_TEST_TOFU"

// Tofu returns the path of OpenTofu. It skips the test if there is none.
func Tofu(t testing.TB) string {
	path := os.Getenv(TofuVariable)
	if path == "" {
		t.Skipf("%s names no binary of OpenTofu", TofuVariable)
	}
	return path
}

// A Folder is a directory with a configuration, in which OpenTofu runs.
type Folder struct {
	Dir  string
	Env  []string // in addition to PATH
	tofu string
}

// NewFolder creates a directory with a configuration.
func NewFolder(t testing.TB, config string, env ...string) *Folder {
	t.Helper()
	f := &Folder{Dir: t.TempDir(), Env: env, tofu: Tofu(t)}
	f.Write(t, "main.tf", config)
	return f
}

// Write creates or replaces a file.
func (f *Folder) Write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Command returns a command that runs OpenTofu.
func (f *Folder) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(f.tofu, args...)
	cmd.Dir = f.Dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.Dir, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "NO_PROXY=127.0.0.1"}, f.Env...)
	return cmd
}

// Run runs OpenTofu and returns its output.
func (f *Folder) Run(t testing.TB, args ...string) (output string, ok bool) {
	t.Helper()
	out, err := f.Command(args...).CombinedOutput()
	return string(out), err == nil
}

// Must runs OpenTofu, which must succeed.
func (f *Folder) Must(t testing.TB, args ...string) string {
	t.Helper()
	out, ok := f.Run(t, args...)
	if !ok {
		t.Fatalf("tofu %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// freePort returns a port that is not in use.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// program returns the path of a program. It also searches the directories outside of PATH
// where Debian installs some programs.
func program(t testing.TB, name, advice string, globs ...string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, g := range globs {
		if found, _ := filepath.Glob(g); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Skipf("%s is not installed: %s", name, advice)
	return ""
}

// folder returns a temporary directory with a short path, which is removed after the test.
// owner, if not nil, may write to it.
func folder(t testing.TB, owner *account) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if owner != nil {
		if err := os.Chown(dir, owner.uid, owner.gid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// account is a user account of this machine.
type account struct{ uid, gid int }

// ordinary returns an account that is not root. It returns nil if this process is not root.
// It skips the test if there is no such account.
func ordinary(t testing.TB, names ...string) *account {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		return &account{uid, gid}
	}
	t.Skipf("the server does not run as root, and there is no user %s", strings.Join(names, " or "))
	return nil
}

// run starts a server and waits until ready returns nil. After the test it stops the server
// with a signal, and kills it if that has no effect.
func run(t testing.TB, as *account, stop os.Signal, ready func(context.Context) error, path string, args ...string) *exec.Cmd {
	t.Helper()
	var log strings.Builder
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = process(as)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // the cleanup below waits for it
	t.Cleanup(func() {
		cmd.Process.Signal(stop)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return cmd
		}
		select {
		case e := <-ended:
			ended <- e
			t.Fatalf("%s: %v\n%s", path, e, &log)
		case <-ctx.Done():
			t.Fatalf("%s does not answer: %v", path, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// dial returns a function that reports whether an address accepts connections.
func dial(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
