package rpc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/testprovider"
)

// TestLauncher is not a test: it is the process that TestProviderEndsWithUs kills.
func TestLauncher(t *testing.T) {
	if os.Getenv("TEST_LAUNCHER") == "" {
		t.Skip("only as a child of TestProviderEndsWithUs")
	}
	// A plugin without output does not notice that its reader has ended.
	launch(t, rpc.Options{
		Addr: testprovider.Addr, Path: "/bin/sh", Args: []string{"-c", "echo '1|6|unix|/nowhere|grpc'; exec sleep 600"},
		Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: t.TempDir(), DisableTLS: true,
	})
	fmt.Println("launched")
	time.Sleep(10 * time.Minute)
}

// A plugin ends when its parent process is killed.
func TestProviderEndsWithUs(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestLauncher$", "-test.v")
	cmd.Env = append(os.Environ(), "TEST_LAUNCHER=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "launched" {
	}
	time.Sleep(300 * time.Millisecond) // if a thread ends too early, the plugin ends with it
	plugins := childrenOf(t, cmd.Process.Pid)
	if len(plugins) != 1 {
		t.Errorf("the program has the children %v, want one", plugins)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range plugins {
		for since := time.Now(); runs(pid); time.Sleep(time.Millisecond) {
			if time.Since(since) > time.Minute {
				t.Fatalf("the plugin %d runs after the program was killed", pid)
			}
		}
	}
}

// stat returns the state of a process and its parent.
func stat(pid string) (state, parent string) {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	i := strings.LastIndexByte(string(b), ')')
	if err != nil || i < 0 {
		return "", ""
	}
	words := strings.Fields(string(b[i+1:]))
	return words[0], words[1]
}

func runs(pid int) bool {
	state, _ := stat(strconv.Itoa(pid))
	return !slices.Contains([]string{"", "Z", "X"}, state)
}

func childrenOf(t *testing.T, pid int) (out []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, en := range entries {
		child, err := strconv.Atoi(en.Name())
		if err != nil {
			continue
		}
		if _, parent := stat(en.Name()); parent == strconv.Itoa(pid) {
			out = append(out, child)
		}
	}
	return out
}
