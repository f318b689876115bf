package sys

// # Child processes
//
// A child receives an explicit directory and a complete environment. It has its own
// process group: the terminal's interrupt only reaches us, we decide which signals the
// child receives, and its own children end together with it.
//
// We read the child's output from our own pipes instead of using os/exec's: after a kill,
// a grandchild may keep a pipe open, and then the readers must be stopped.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/process"
)

// Command is a child process to run.
type Command = process.Command

const defaultGrace = 5 * time.Second

// Run runs a command and waits for its end. If ctx ends first, Run interrupts the child's
// process group, kills it after c.Grace, and returns an error that wraps ErrInterrupted.
// If the child's status is not 0, ExitCode returns the status of the error.
func Run(ctx context.Context, c Command) error { return run(ctx, c, nil) }

// run is like Run and registers the child in g. g may be nil.
func run(ctx context.Context, c Command, g *Children) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", c.Path, errors.Join(ErrInterrupted, context.Cause(ctx)))
	}
	cmd, err := Prepare(c)
	if err != nil {
		return err
	}
	out, err := attach(cmd, c.Stdout, c.Stderr)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	if err := out.feed(cmd, c.Stdin); err != nil {
		out.abandon()
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	if err := g.start(ctx, cmd); err != nil {
		out.abandon()
		return err
	}
	out.started()
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { endWith(ctx, c, cmd, out, ended) })
	err = cmd.Wait()
	out.wait()
	g.forget(cmd)
	close(ended)
	watch.Wait()
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%s: %w", c.Path, errors.Join(ErrInterrupted, err))
	}
	return err
}

// Prepare returns the child for callers that start it and wait for it themselves, such as
// the plugin client. The streams are not connected.
func Prepare(c Command) (*exec.Cmd, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("%s: no working directory was given for it", c.Path)
	}
	path, err := LookPath(c.Path, c.Dir, c.Env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, c.Args...)
	cmd.Args[0] = c.Path
	cmd.Dir = c.Dir
	cmd.Env = c.Env
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would mean our own environment
	}
	if !c.Foreground || !hasTerminal() {
		ownGroup(cmd)
	}
	return cmd, nil
}

// become replaces this process with a command, which keeps our streams; the streams of c
// are ignored. It returns only if the system cannot do this.
func become(c Command) error {
	cmd, err := Prepare(c)
	if err != nil {
		return err
	}
	return replace(cmd)
}

// ExitCode returns the exit status of a child, or -1 if a signal ended it. ok is false if
// err does not come from a child that ran.
func ExitCode(err error) (code int, ok bool) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), true
	}
	return 0, err == nil
}

// Kill kills a child from Prepare with its process group.
func Kill(cmd *exec.Cmd) {
	if cmd.Process != nil {
		signalGroup(cmd, true)
	}
}

// endWith ends the child when ctx ends.
func endWith(ctx context.Context, c Command, cmd *exec.Cmd, out *output, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	grace := c.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	if grace > 0 {
		signalGroup(cmd, false)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-ended:
			return
		case <-timer.C:
		}
	}
	signalGroup(cmd, true)
	out.abortReaders()
}

// output contains the pipes between a child and its streams.
type output struct {
	theirs, ours []*os.File // both ends of the pipes that the child writes to
	to           []io.Writer
	wg           sync.WaitGroup

	in   *os.File // our end of the pipe that the child reads from, or nil
	from io.Reader
}

// attach connects the child's output streams: files directly, other writers through a pipe.
func attach(cmd *exec.Cmd, stdout, stderr io.Writer) (*output, error) {
	o := new(output)
	f, err := o.add(stdout)
	if err != nil {
		return nil, err
	}
	cmd.Stdout = f
	if sameWriter(stdout, stderr) {
		cmd.Stderr = f
		return o, nil
	}
	if f, err = o.add(stderr); err != nil {
		o.abandon()
		return nil, err
	}
	cmd.Stderr = f
	return o, nil
}

func sameWriter(a, b io.Writer) bool {
	defer func() { _ = recover() }() // comparing the interfaces panics if their types are not comparable
	return a == b
}

// add returns the writer for the child; a nil interface if w is nil.
func (o *output) add(w io.Writer) (io.Writer, error) {
	if w == nil {
		return nil, nil
	}
	if f := fileOf(w); f != nil {
		return f, nil
	}
	r, pw, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.theirs, o.ours, o.to = append(o.theirs, pw), append(o.ours, r), append(o.to, w)
	return pw, nil
}

// feed connects the child's input: a file directly, another reader through a pipe.
func (o *output) feed(cmd *exec.Cmd, from io.Reader) error {
	if from == nil {
		return nil
	}
	if f := fileOf(from); f != nil {
		cmd.Stdin = f
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdin, o.in, o.from = r, w, from
	o.theirs = append(o.theirs, r)
	return nil
}

func (o *output) started() {
	closeAll(o.theirs)
	if o.in != nil {
		// No code waits for this goroutine: it may block in a read from the terminal. It
		// ends after that read, since wait closes the pipe.
		go func() {
			_, _ = io.Copy(o.in, o.from)
			_ = o.in.Close()
		}()
	}
	for i, r := range o.ours {
		o.wg.Go(func() {
			_, err := io.Copy(o.to[i], r)
			if err != nil { // the writer failed or the context ended: the child must not block
				_, _ = io.Copy(io.Discard, r)
			}
		})
	}
}

func (o *output) wait() {
	o.wg.Wait()
	o.closeOurs()
}

// abortReaders ends the readers although another process keeps the pipe open.
func (o *output) abortReaders() {
	soon := time.Now().Add(200 * time.Millisecond)
	for _, r := range o.ours {
		_ = r.SetReadDeadline(soon)
	}
}

func (o *output) abandon() {
	closeAll(o.theirs)
	o.closeOurs()
}

func (o *output) closeOurs() {
	closeAll(o.ours)
	if o.in != nil {
		_ = o.in.Close()
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
