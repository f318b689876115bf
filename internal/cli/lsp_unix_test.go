//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creachadair/jrpc2/channel"
)

// editorProcess is a running language server, with the front that the test has started.
type editorProcess struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	c    channel.Channel
	errs bytes.Buffer
}

func startEditor(t *testing.T, args ...string) *editorProcess {
	t.Helper()
	p := &editorProcess{t: t}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "terrace") // TestMain runs the program by this name
	if err := os.Link(self, name); err != nil {
		t.Skipf("the program cannot get another name: %v", err)
	}
	p.cmd = exec.Command(name, append([]string{"lsp"}, args...)...)
	p.cmd.Dir, p.cmd.Stderr = t.TempDir(), &p.errs
	p.cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.c = channel.LSP(out, p.in)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}`)
	p.receive(1)
	p.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	return p
}

func (p *editorProcess) send(m string) {
	p.t.Helper()
	if err := p.c.Send([]byte(m)); err != nil {
		p.t.Fatal(err)
	}
}

// receive returns the answer to a request.
func (p *editorProcess) receive(id int) string {
	p.t.Helper()
	for {
		m, err := p.c.Recv()
		if err != nil {
			p.t.Fatalf("%v: %s", err, p.errs.String())
		}
		var a struct {
			ID     int    `json:"id"`
			Method string `json:"method"`
		}
		if json.Unmarshal(m, &a) == nil && a.ID == id && a.Method == "" {
			return string(m)
		}
	}
}

// ended waits for the end of the process and returns its exit status.
func (p *editorProcess) ended() int {
	p.t.Helper()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, onlyReads{p.c})
		_ = p.cmd.Wait() // the status counts
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		p.t.Fatal("the process does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// onlyReads reads the rest of a connection.
type onlyReads struct{ c channel.Channel }

func (o onlyReads) Read([]byte) (int, error) {
	_, err := o.c.Recv()
	return 0, err
}

// server returns the ID of the process that the front has started, or 0.
func (p *editorProcess) server() int {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/task/*/children")
	for _, name := range tasks {
		b, _ := os.ReadFile(name)
		for _, f := range strings.Fields(string(b)) {
			id, _ := strconv.Atoi(f)
			return id
		}
	}
	return 0
}

func gone(t *testing.T, process int) {
	t.Helper()
	for range 300 {
		if syscall.Kill(process, 0) != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("process %d still runs", process)
}

// The processes of the language server end together, with the exit status of the server.
func TestLanguageServerEnds(t *testing.T) {
	shutdown := `{"jsonrpc":"2.0","id":2,"method":"shutdown"}`
	exit := `{"jsonrpc":"2.0","method":"exit"}`
	for name, test := range map[string]struct {
		args   []string
		do     func(p *editorProcess, server int)
		code   int
		stderr string
	}{
		"shutdown and exit": {nil, func(p *editorProcess, _ int) { p.send(shutdown); p.receive(2); p.send(exit) }, 0, ""},
		"exit":              {nil, func(p *editorProcess, _ int) { p.send(exit) }, 1, ""},
		"disconnected":      {[]string{"--stdio"}, func(p *editorProcess, _ int) { _ = p.in.Close() }, 1, ""},
		"server killed":     {nil, func(_ *editorProcess, server int) { _ = syscall.Kill(server, syscall.SIGKILL) }, 1, "signal: killed"},
		"front killed":      {nil, func(p *editorProcess, _ int) { _ = p.cmd.Process.Kill() }, -1, ""},
		"terminated":        {nil, func(p *editorProcess, _ int) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startEditor(t, test.args...)
			server := p.server()
			if server == 0 {
				t.Skip("the system does not list the children of a process")
			}
			test.do(p, server)
			if code := p.ended(); code != test.code || !strings.Contains(p.errs.String(), test.stderr) {
				t.Errorf("the exit status is %d, not %d: %s", code, test.code, p.errs.String())
			}
			gone(t, server)
		})
	}
}

// Formatting does not need the server: it is answered while the server is stopped. The server is this program.
func TestFormattingInFront(t *testing.T) {
	p := startEditor(t)
	server := p.server()
	if server == 0 {
		t.Skip("the system does not list the children of a process")
	}
	ours, err := os.Readlink("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/exe")
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err := os.Readlink("/proc/" + strconv.Itoa(server) + "/exe"); err != nil || theirs != ours {
		t.Errorf("the server is %s, %v, not %s", theirs, err, ours)
	}
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	format := `"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///x/main.tf"}}}`
	p.send(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///x/main.tf","text":"a=1\n"}}}`)
	p.send(`{"jsonrpc":"2.0","id":5,` + format)
	if a := p.receive(5); !strings.Contains(a, `"newText":"a = 1\n"`) {
		t.Errorf("the answer is %s", a)
	}
	if err := syscall.Kill(server, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.send(`{"jsonrpc":"2.0","id":6,"method":"shutdown"}`)
	p.receive(6)
	p.send(`{"jsonrpc":"2.0","method":"exit"}`)
	if code := p.ended(); code != 0 {
		t.Errorf("the exit status is %d: %s", code, p.errs.String())
	}
}

// With --no-exec, the language server starts no process.
func TestLanguageServerAlone(t *testing.T) {
	p := startEditor(t, "--no-exec")
	if server := p.server(); server != 0 {
		t.Errorf("process %d was started", server)
	}
	p.send(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///x/main.tf","text":"a=1\n"}}}`)
	p.send(`{"jsonrpc":"2.0","id":5,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///x/main.tf"}}}`)
	if a := p.receive(5); !strings.Contains(a, `"newText":"a = 1\n"`) {
		t.Errorf("the answer is %s", a)
	}
	_ = p.in.Close()
	if code := p.ended(); code != 1 {
		t.Errorf("the exit status is %d", code)
	}
}
