// Package servers starts the services that backends are tested against: the real
// ones where they can be had, and stand-ins that are written from the documented
// interfaces. All of them listen on the loopback address and end with the test.
//
// Main functions: Postgres and Etcd, which run the real servers, HTTP, AWS, Consul,
// Kubernetes, COS and OSS, which are stand-ins, and Tofu, the other party. The one
// rule: what cannot be had skips the test and says why.
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

// TofuVariable names the binary of OpenTofu that tests run as the other party.
const TofuVariable = "TERRACE_TEST_TOFU"

// Tofu is the path of OpenTofu, or the test is skipped.
func Tofu(t testing.TB) string {
	path := os.Getenv(TofuVariable)
	if path == "" {
		t.Skipf("%s names no binary of OpenTofu", TofuVariable)
	}
	return path
}

// A Folder is a folder with a configuration in which OpenTofu is run.
type Folder struct {
	Dir  string
	Env  []string // besides PATH
	tofu string
}

// NewFolder makes a folder with a configuration.
func NewFolder(t testing.TB, config string, env ...string) *Folder {
	t.Helper()
	f := &Folder{Dir: t.TempDir(), Env: env, tofu: Tofu(t)}
	f.Write(t, "main.tf", config)
	return f
}

// Write makes or replaces a file.
func (f *Folder) Write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Command is OpenTofu with arguments, ready to start.
func (f *Folder) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(f.tofu, args...)
	cmd.Dir = f.Dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.Dir, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "NO_PROXY=127.0.0.1"}, f.Env...)
	return cmd
}

// Run runs OpenTofu and returns all that it wrote.
func (f *Folder) Run(t testing.TB, args ...string) (output string, ok bool) {
	t.Helper()
	out, err := f.Command(args...).CombinedOutput()
	return string(out), err == nil
}

// Must runs OpenTofu, which has to succeed.
func (f *Folder) Must(t testing.TB, args ...string) string {
	t.Helper()
	out, ok := f.Run(t, args...)
	if !ok {
		t.Fatalf("tofu %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// freePort is a port that nobody listens on just now.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// program finds a program, also where Debian keeps those that are not in PATH.
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

// folder is a short temporary folder, which is removed after the test. owner, if it is
// not nil, may write to it.
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

// account is a user of this machine by its numbers.
type account struct{ uid, gid int }

// ordinary is a user that is not root, nil where this process is none; the test is
// skipped where there is no such user.
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

// run starts a server and waits until ready says so. It is stopped with a signal
// after the test, and killed where that does not help.
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
	go func() { ended <- cmd.Wait() }() // the clean-up below waits for it
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

// dial reports whether somebody listens at an address.
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
