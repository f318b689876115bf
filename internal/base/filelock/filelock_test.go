package filelock

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestMain doubles as a process that holds a lock until its input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv("FILELOCK_TEST_HOLD"); path != "" {
		unlock, err := Lock(context.Background(), path)
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		unlock()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockKeepsOutOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "FILELOCK_TEST_HOLD="+path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatal(line, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); err == nil {
		t.Fatal("two processes have the lock")
	}
	in.Close()
	unlock, err := Lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestLockKeepsOutOthersInProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	var n, most int
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			unlock, err := Lock(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			n++
			most = max(most, n)
			n--
			unlock()
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d had the lock at once", most)
	}
	unlock, err := Lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Lock(ended, path); err == nil {
		t.Error("the lock was taken twice")
	}
}

func TestLockFails(t *testing.T) {
	if _, err := Lock(context.Background(), filepath.Join(t.TempDir(), "no", "such")); err == nil {
		t.Error("a lock without a directory")
	}
}
