package sys

// # Child processes
//
// A child gets its folder and its complete environment explicitly, and a process
// group of its own, so that the terminal's interrupt reaches us alone and we
// decide which signals the child gets, and so that what the child has started can be
// ended together with it.
//
// The output goes through pipes that we read ourselves instead of leaving it to
// os/exec: a child that was killed may have left a grandchild behind that holds
// the pipe open, and then the readers have to be called off.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/process"
)

// A Command is a child process to run.
type Command = process.Command

const defaultGrace = 5 * time.Second

// Run runs a command to its end. When the context ends first, the child's
// process group is interrupted, killed after c.Grace, and the error wraps
// ErrInterrupted. A child that ended with a status other than 0 gives an error
// from which ExitCode tells the status.
func Run(ctx context.Context, c Command) error { return run(ctx, c, nil) }

// run is Run for a child that is one of g while it runs; g may be nil.
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

// Prepare makes the child ready for callers that start and wait for it by
// themselves, such as the plugin client. Its streams are not connected.
func Prepare(c Command) (*exec.Cmd, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("%s: no working folder was given for it", c.Path)
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
		cmd.Env = []string{} // nil would mean our own
	}
	if !c.Foreground || !hasTerminal() {
		ownGroup(cmd)
	}
	return cmd, nil
}

// become runs a command in place of this process, whose streams it has; c's are not looked
// at. It returns where that cannot be done.
func become(c Command) error {
	cmd, err := Prepare(c)
	if err != nil {
		return err
	}
	return replace(cmd)
}

// ExitCode is the status that a child ended with, and -1 for one that a signal
// ended. ok is false if err does not come from a child that ran.
func ExitCode(err error) (code int, ok bool) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), true
	}
	return 0, err == nil
}

// Kill ends a child that Prepare made, together with its process group.
func Kill(cmd *exec.Cmd) {
	if cmd.Process != nil {
		signalGroup(cmd, true)
	}
}

// endWith ends the child when the context does.
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

// output is the pipes between a child and the streams that it was given.
type output struct {
	theirs, ours []*os.File // of pipes that the child writes to
	to           []io.Writer
	wg           sync.WaitGroup

	in   *os.File // our end of the pipe that it reads from, or nil
	from io.Reader
}

// attach connects the child's streams: files directly, other writers by a pipe.
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
	defer func() { _ = recover() }() // the types need not be comparable
	return a == b
}

// add returns what the child is to write to; a nil interface where w is nil.
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

// feed connects the child's input: a file directly, another reader by a pipe.
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
		// Nobody waits for this one: it may hang in a read of a terminal that
		// nobody types at. It ends with that read, since wait closes the pipe.
		go func() {
			_, _ = io.Copy(o.in, o.from)
			_ = o.in.Close()
		}()
	}
	for i, r := range o.ours {
		o.wg.Go(func() {
			_, err := io.Copy(o.to[i], r)
			if err != nil { // the writer failed or we were called off: let the child not block
				_, _ = io.Copy(io.Discard, r)
			}
		})
	}
}

func (o *output) wait() {
	o.wg.Wait()
	o.closeOurs()
}

// abortReaders ends the readers soon, though somebody still holds the pipe open.
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
