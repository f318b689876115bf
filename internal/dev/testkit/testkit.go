// Package testkit builds programs for tests: a real provider from the Go module proxy, our
// own test provider, and the program itself. It also writes directories of test files.
//
// Main functions: TimeProvider, TestProvider, Terrace and Files. The one rule: programs are kept
// in the user's cache directory and shared by all test processes, so that each is built
// only once.
package testkit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/filelock"
)

// TimeVersion is the version of hashicorp/time that TimeProvider builds.
const TimeVersion = "0.14.2"

// TimeVariable is the environment variable with the path of a binary of hashicorp/time,
// which is then not built.
const TimeVariable = "TERRACE_TEST_PROVIDER_TIME"

const (
	module     = "github.com/terrace-iac/terrace"
	timeModule = "github.com/hashicorp/terraform-provider-time"
	patience   = 8 * time.Minute // time limit for building, or for waiting for another process that builds
)

// TimeProvider returns the path of a binary of the provider hashicorp/time. It skips the
// test, with the reason, if there is none.
func TimeProvider(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(TimeVariable); path != "" {
		if !filepath.IsAbs(path) {
			t.Fatalf("%s must be an absolute path, not %q", TimeVariable, path)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%s: %v", TimeVariable, err)
		}
		return path
	}
	path, err := timeProvider(t.Context())
	if errors.Is(err, errUnreachable) {
		t.Skipf("SKIP: %v; set %s to use a binary of yours", err, TimeVariable)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// errUnreachable is the error that the source of the provider cannot be downloaded.
var errUnreachable = errors.New("the provider hashicorp/time cannot be downloaded through the Go module proxy")

func timeProvider(ctx context.Context) (string, error) {
	dir, err := cacheDir("time-" + TimeVersion)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "terraform-provider-time"+exe())
	return path, once(ctx, dir, func(ctx context.Context) error {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		at := timeModule + "@v" + TimeVersion
		if err := goCommand(ctx, dir, nil, "mod", "download", at); err != nil {
			return fmt.Errorf("%w: %w", errUnreachable, err)
		}
		return install(ctx, dir, dir, at)
	})
}

// CornerVariable is the environment variable with the path of a binary of HashiCorp's test provider
// terraform-provider-corner. The Go module proxy does not serve that module, so that tests do not
// build it.
const CornerVariable = "TERRACE_TEST_PROVIDER_CORNER"

// CornerProvider returns the path of a binary of terraform-provider-corner. It skips the test, with
// the reason, if there is none.
func CornerProvider(t testing.TB) string {
	t.Helper()
	path := os.Getenv(CornerVariable)
	if path == "" {
		t.Skipf("SKIP: %s does not contain the path of a binary of terraform-provider-corner", CornerVariable)
	}
	if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
		t.Fatalf("%s must be the absolute path of a program, not %q", CornerVariable, path)
	}
	return path
}

// FrameworkProvider returns the path of our own provider on HashiCorp's plugin framework, for
// protocol 5 or 6. It skips the test, with the reason, if the framework cannot be downloaded.
func FrameworkProvider(t testing.TB, protocol int) string {
	t.Helper()
	path, err := frameworkProvider(t.Context())
	if errors.Is(err, errNoFramework) {
		t.Skipf("SKIP: %v", err)
	}
	if err == nil && protocol == 5 {
		path, err = withVariable(filepath.Dir(path), path, "TERRACE_TEST_FW_PROTOCOL")
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// errNoFramework is the error that the plugin framework cannot be downloaded.
var errNoFramework = errors.New("HashiCorp's plugin framework cannot be downloaded through the Go module proxy")

func frameworkProvider(ctx context.Context) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(fmt.Sprintf("framework-%x", sha256.Sum256([]byte(root)))[:25])
	if err != nil {
		return "", err
	}
	from := filepath.Join(root, "internal", "dev", "frameworkprovider") // a module of its own
	return filepath.Join(dir, "frameworkprovider"+exe()), once(ctx, dir, func(ctx context.Context) error {
		if err := goCommand(ctx, from, nil, "mod", "download"); err != nil {
			return fmt.Errorf("%w: %w", errNoFramework, err)
		}
		return install(ctx, dir, from, ".")
	})
}

// TestProvider returns the path of our own test provider for protocol 5 or 6. It builds the
// provider if its source has changed.
func TestProvider(t testing.TB, protocol int) string {
	t.Helper()
	if protocol != 5 && protocol != 6 {
		t.Fatalf("there is no test provider for protocol %d", protocol)
	}
	path, err := testProvider(t.Context(), protocol)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func testProvider(ctx context.Context, protocol int) (string, error) {
	path, err := fromTree(ctx, "terraform-provider-test", "/internal/provider/testprovider/cmd/terraform-provider-test")
	if err != nil || protocol == 6 {
		return path, err
	}
	return withVariable(filepath.Dir(path), path, "TEST_PROTOCOL")
}

// Terrace returns the path of the program itself. It builds the program if its source has
// changed.
func Terrace(t testing.TB) string {
	t.Helper()
	path, err := fromTree(t.Context(), "terrace", "/cmd/terrace")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Worker returns the path of the program that connects to a Temporal server, which is next
// to Terrace's.
func Worker(t testing.TB) string {
	t.Helper()
	path, err := fromTree(t.Context(), "terrace-worker", "/cmd/terrace-worker")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// fromTree builds a program of this module.
func fromTree(ctx context.Context, name, pkg string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(fmt.Sprintf("tree-%x", sha256.Sum256([]byte(root)))[:20])
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+exe())
	built.Lock()
	defer built.Unlock()
	if built.programs[path] {
		return path, nil
	}
	// go install does not replace a binary that is up to date.
	err = once(ctx, dir, func(ctx context.Context) error { return install(ctx, dir, root, module+pkg) })
	built.programs[path] = err == nil
	return path, err
}

// built contains the programs of this module that this process has installed. The go
// command takes seconds to find out whether a binary is up to date, and sources do not
// change during a test.
var built = struct {
	sync.Mutex
	programs map[string]bool
}{programs: map[string]bool{}}

// withVariable creates a program that runs the given one with protocol 5, which a variable selects.
func withVariable(dir, path, variable string) (string, error) {
	if runtime.GOOS == "windows" {
		return "", errors.New("the test provider speaks protocol 5 only where there is a shell")
	}
	script := filepath.Join(dir, "protocol5", filepath.Base(path))
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		return "", err
	}
	text := []byte("#!/bin/sh\n" + variable + "=5 exec '" + strings.ReplaceAll(path, "'", `'\''`) + "' \"$@\"\n")
	if old, err := os.ReadFile(script); err == nil && bytes.Equal(old, text) {
		return script, nil
	}
	// Another process may be running the file, so it must not be overwritten.
	tmp := fmt.Sprintf("%s.%d", script, os.Getpid())
	if err := os.WriteFile(tmp, text, 0o755); err != nil {
		return "", err
	}
	return script, os.Rename(tmp, script)
}

// once runs a build while no other process builds in the same directory.
func once(ctx context.Context, dir string, build func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	unlock, err := filelock.Lock(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return build(ctx)
}

// install builds a main package into a directory, atomically.
func install(ctx context.Context, bin, dir, pkg string) error {
	return goCommand(ctx, dir, []string{"GOBIN=" + bin}, "install", pkg)
}

// goCommand runs the go command without the workspace of the user, and without the flags except
// for tags. TERRACE_TEST_CGO_ENABLED is the CGO_ENABLED of programs that tests build, so that a
// test with the race detector, which needs cgo, uses packages that are compiled already.
func goCommand(ctx context.Context, dir string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...) // the one that runs the tests, which is first in PATH
	cmd.Dir = dir
	flags := "GOFLAGS=-buildvcs=false"
	for _, f := range strings.Fields(os.Getenv("GOFLAGS")) {
		if strings.HasPrefix(f, "-tags=") {
			flags += " " + f
		}
	}
	cmd.Env = append(os.Environ(), append(env, flags, "GOWORK=off")...)
	if cgo := os.Getenv("TERRACE_TEST_CGO_ENABLED"); cgo != "" {
		cmd.Env = append(cmd.Env, "CGO_ENABLED="+cgo)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// cacheDir creates a directory of ours in the user's cache directory, or among the
// temporary files if that is not writable.
func cacheDir(name string) (string, error) {
	if base, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(base, "terrace-test", name)
		if err := os.MkdirAll(dir, 0o755); err == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("terrace-test-%d", os.Getuid()), name)
	return dir, os.MkdirAll(dir, 0o755)
}

// moduleRoot returns the directory of our go.mod. Tests run in the directory of their
// package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module "+module+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the tests do not run inside the module " + module)
		}
		dir = parent
	}
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
