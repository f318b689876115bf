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
	"github.com/terrace-iac/terrace/internal/sys"
)

// A process is a plugin's process as go-plugin wants to see it. It reads the
// first line of the plugin before go-plugin does, and calls the readers of its
// output off when the process has ended: a grandchild may hold the pipes open.
type process struct {
	cmd *exec.Cmd
	out *tail

	stdout, stderr pipe

	private string // the folder that the plugin's socket must be in; "": anywhere

	done    chan struct{} // closed when the process has ended
	drained chan struct{} // closed when its standard error has been read to the end
	waitErr error         // how, once done is closed

	mu       sync.Mutex
	started  bool
	unwanted bool // it was killed, perhaps before it was started
	shake    handshake
	shakeErr error // why the first line cannot be used

	first   []byte // what is left of the first line to give to go-plugin
	checked bool
	lines   *bufio.Reader
}

// A pipe takes what the child writes.
type pipe struct {
	*os.File          // our end
	child    *os.File // the child's end, until it is started
}

var _ runner.Runner = (*process)(nil)

// lingering is how long output is read after the process has ended.
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

// Start starts the child. The readers of its output end soon after it.
//
// The child shall not outlive us, whatever ends us. Linux kills it when the thread
// that started it ends, so that thread must be there as long as the child: it is
// the one that waits for it.
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

// Kill ends the process and all that it started, as soon as it is started if it is not.
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

// ended reports whether the process has ended, waiting for it up to d. If so, all
// that it wrote last is in the tail.
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
	<-p.drained // reap sees to it
	return true
}

// how tells how the process ended: "exit status 2", "signal: killed".
func (p *process) how() string {
	if p.waitErr == nil {
		return "exit status 0"
	}
	return p.waitErr.Error()
}

// Stdout gives go-plugin the first line, if it can be used, and nothing else.
func (p *process) Stdout() io.ReadCloser { return firstLine{p} }

type firstLine struct{ p *process }

func (f firstLine) Close() error { return f.p.stdout.Close() }

// Read is called by one goroutine of go-plugin. What follows the first line goes
// to the log: a plugin must be able to write it.
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

var errNotPrivate = errors.New("it does not listen in the folder that it was given, and was asked to run without TLS")

var errNoLine = errors.New("it ended its output without the first line of a provider plugin")

// handshakeResult is what the first line said; an empty handshake and no error
// mean that there was none yet.
func (p *process) handshakeResult() (handshake, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shake, p.shakeErr
}

// Stderr is read by go-plugin and comes back to us, into the tail, line by line.
func (p *process) Stderr() io.ReadCloser { return &errOutput{p: p} }

// errOutput tells when go-plugin has come to the end of it.
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

// ID is never empty, so that go-plugin cleans up after a failed start too.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return "not started"
	}
	return strconv.Itoa(p.cmd.Process.Pid)
}

// Diagnose adds nothing: the message is made by who launched the plugin.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost and HostToPlugin leave addresses alone.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin is the inverse of PluginToHost.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}
