//go:build unix

package main_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// The environment variables with a Temporal server for tests: a running one
// (HOST:PORT/NAMESPACE), or the program of examples/temporal, which tests start, kill and
// restart.
const (
	serverVariable  = "TERRACE_TEST_TEMPORAL"
	programVariable = "TERRACE_TEST_TEMPORAL_SERVER"
	runKey          = "TERRACE_RUN_KEY=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
)

// temporal is a server for a test. Without a program it cannot be killed.
type temporal struct {
	t                  *testing.T
	address, namespace string
	program, db        string
	running            *exec.Cmd
}

// aTemporal returns a server. It skips the test if there is none.
func aTemporal(t *testing.T) *temporal {
	t.Helper()
	s := &temporal{t: t, program: os.Getenv(programVariable)}
	if s.program == "" {
		at := os.Getenv(serverVariable)
		if at == "" {
			t.Skipf("SKIP: neither %s nor %s names a Temporal server (HOST:PORT/NAMESPACE, or the program of examples/temporal)", serverVariable, programVariable)
		}
		testkit.Worker(t)
		s.address, s.namespace, _ = strings.Cut(at, "/")
		return s
	}
	testkit.Worker(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address, s.namespace, s.db = l.Addr().String(), "default", filepath.Join(t.TempDir(), "temporal.db")
	_ = l.Close()
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts the server and waits until it responds. On a busy machine its parts may time
// out during the start, and the program ends. Then start runs it again, as a supervisor
// would do.
func (s *temporal) start() {
	s.t.Helper()
	var err error
	for range 10 {
		if err = s.begin(); err == nil {
			return
		}
		s.t.Logf("the server did not start, and is started again: %v", err)
	}
	s.t.Errorf("the server does not start: %v", err) // this may not be the test's goroutine
}

func (s *temporal) begin() error {
	c := exec.CommandContext(s.t.Context(), s.program, "--listen", s.address, "--namespace", s.namespace, "--db", s.db)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err == nil {
		c.Stderr = os.Stderr
		err = c.Start()
	}
	if err != nil {
		return err
	}
	s.running = c
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		s.kill()
		return fmt.Errorf("%w %s", err, line)
	}
	return nil
}

// kill kills the server.
func (s *temporal) kill() {
	if s.running != nil {
		_ = s.running.Process.Kill()
		_ = s.running.Wait()
		s.running = nil
	}
}

// url returns the value of --on for the server at an address.
func (s *temporal) url(address, queue string) string {
	return fmt.Sprintf("temporal://%s/%s/%s", address, s.namespace, queue)
}

// A wire forwards connections to an address, until it is cut.
type wire struct {
	to       string
	listener net.Listener
	stalled  sync.RWMutex // locked while no data is forwarded

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: to, listener: l, conns: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { w.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.setCut(true)
		wg.Wait()
	})
	return w
}

func (w *wire) address() string { return w.listener.Addr().String() }

// setCut closes all connections and accepts no new ones while it is set.
func (w *wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for c := range w.conns {
			_ = c.Close()
		}
		clear(w.conns)
	}
}

// note records a connection. It closes the connection if the wire is cut.
func (w *wire) note(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		_ = c.Close()
		return false
	}
	w.conns[c] = true
	return true
}

func (w *wire) carry(c net.Conn) {
	if !w.note(c) {
		return
	}
	to, err := net.DialTimeout("tcp", w.to, 5*time.Second)
	if err != nil || !w.note(to) {
		_ = c.Close()
		return
	}
	var wg sync.WaitGroup
	for _, pair := range [][2]net.Conn{{c, to}, {to, c}} {
		wg.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := pair[0].Read(buf)
				w.stalled.RLock()
				if n > 0 {
					_, more := pair[1].Write(buf[:n])
					err = errorsOf(err, more)
				}
				w.stalled.RUnlock()
				if err != nil {
					_ = pair[0].Close()
					_ = pair[1].Close()
					return
				}
			}
		})
	}
	wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	delete(w.conns, to)
}

func errorsOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
