package rpc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// process implements go-plugin's interface of a plugin's process. It reads the plugin's
// first line before go-plugin does. It stops the readers of the output when the process has
// ended, because a grandchild may keep the pipes open.
type process struct {
	cmd *exec.Cmd
	out *tail

	stdout, stderr pipe

	private string // the required directory of the plugin's socket; "" means any

	done    chan struct{} // closed when the process has ended
	drained chan struct{} // closed when its standard error has been read completely
	waitErr error         // the error of Wait, set before done is closed

	mu       sync.Mutex
	started  bool
	unwanted bool // it was killed, possibly before its start
	shake    handshake
	shakeErr error // the reason why the first line is invalid

	first   []byte // the rest of the first line for go-plugin
	checked bool
	lines   *bufio.Reader
}

// pipe receives the child's output.
type pipe struct {
	*os.File          // our end
	child    *os.File // the child's end, until its start
}

var _ runner.Runner = (*process)(nil)

// lingering is the time for which output is read after the end of the process.
const lingering = 500 * time.Millisecond

func newProcess(cmd *exec.Cmd, out *tail) (*process, error) {
	p := &process{cmd: cmd, out: out, done: make(chan struct{}), drained: make(chan struct{})}
	var err error
	if p.stdout.File, p.stdout.child, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stderr.File, p.stderr.child, err = os.Pipe(); err != nil {
		return nil, errors.Join(err, p.stdout.Close(), p.stdout.child.Close())
	}
	cmd.Stdout, cmd.Stderr = p.stdout.child, p.stderr.child
	p.lines = bufio.NewReaderSize(p.stdout, maxLine)
	return p, nil
}

// Start starts the child. The readers of its output end shortly after it.
//
// The child must not outlive us, even if we are killed. Linux kills it when the thread that
// started it ends. So that thread must exist as long as the child: it waits for the child.
func (p *process) Start(context.Context) error {
	sys.EndWithUs(p.cmd)
	started := make(chan error)
	go func() { // ends with the process; Wait waits for it
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.reap()
		}
	}()
	err := <-started
	_ = p.stdout.child.Close()
	_ = p.stderr.child.Close()
	if err != nil {
		_ = p.stdout.Close()
		_ = p.stderr.Close()
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = true
	if p.unwanted {
		p.kill()
	}
	return nil
}

func (p *process) reap() {
	p.waitErr = p.cmd.Wait()
	close(p.done)
	time.AfterFunc(lingering, func() {
		_ = p.stdout.Close()
		_ = p.stderr.Close()
	})
}

// Wait waits for the end of the process.
func (p *process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.waitErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill kills the process and its children. If the process has not started yet, it is killed
// after its start.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unwanted = true; p.started {
		p.kill()
	}
	return nil
}

// kill kills the process if it has not ended. The caller holds the lock.
func (p *process) kill() {
	select {
	case <-p.done:
	default:
		sys.Kill(p.cmd)
	}
}

// ended reports whether the process has ended, and waits for it up to d. If it has, the
// tail contains its last output.
func (p *process) ended(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
	default:
		select {
		case <-p.done:
		case <-t.C:
			return false
		}
	}
	<-p.drained // reap closes it
	return true
}

// how describes the end of the process: "exit status 2", "signal: killed".
func (p *process) how() string {
	if p.waitErr == nil {
		return "exit status 0"
	}
	return p.waitErr.Error()
}

// Stdout returns only the first line, if it is valid, to go-plugin.
func (p *process) Stdout() io.ReadCloser { return firstLine{p} }

type firstLine struct{ p *process }

func (f firstLine) Close() error { return f.p.stdout.Close() }

// Read is called by one goroutine of go-plugin. Output after the first line goes to the
// log, so that the plugin does not block.
func (f firstLine) Read(b []byte) (int, error) {
	p := f.p
	if !p.checked {
		p.checked = true
		line, err := p.lines.ReadSlice('\n')
		h, shakeErr := parseHandshake(string(line))
		switch {
		case len(line) == 0 && err != nil:
			shakeErr = errNoLine
		case errors.Is(err, bufio.ErrBufferFull):
			shakeErr = errors.New("its first line is longer than " + strconv.Itoa(maxLine) + " bytes")
		case shakeErr == nil && p.private != "" && !h.within(p.private):
			shakeErr = errNotPrivate
		}
		p.mu.Lock()
		p.shake, p.shakeErr = h, shakeErr
		p.mu.Unlock()
		if shakeErr != nil {
			_, _ = p.out.Write(line)
			return 0, io.EOF
		}
		p.first = append([]byte(nil), line...)
	}
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	_, _ = io.Copy(p.out, p.lines)
	return 0, io.EOF
}

var errNotPrivate = errors.New("it does not listen in the directory that it was given, and was asked to run without TLS")

var errNoLine = errors.New("it ended its output without the first line of a provider plugin")

// handshakeResult returns the parsed first line. An empty handshake without an error means
// that there was no line yet.
func (p *process) handshakeResult() (handshake, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shake, p.shakeErr
}

// Stderr is read by go-plugin, which writes it to the tail line by line.
func (p *process) Stderr() io.ReadCloser { return &errOutput{p: p} }

// errOutput records when go-plugin has read it completely.
type errOutput struct {
	p    *process
	once sync.Once
}

func (e *errOutput) Close() error { return e.p.stderr.Close() }

func (e *errOutput) Read(b []byte) (int, error) {
	n, err := e.p.stderr.Read(b)
	if err != nil && n == 0 {
		e.once.Do(func() { close(e.p.drained) })
	}
	return n, err
}

// Name is the path of the program.
func (p *process) Name() string { return p.cmd.Path }

// ID is never empty, so that go-plugin also cleans up after a failed start.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return "not started"
	}
	return strconv.Itoa(p.cmd.Process.Pid)
}

// Diagnose returns "": Launch creates the message.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost and HostToPlugin return addresses unchanged.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin is the inverse of PluginToHost.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}
