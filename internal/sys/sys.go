// Package sys owns the effects that the rest of the program may not cause by
// itself: working folder, environment, standard streams, clock, terminal,
// signals, host and user names, and child processes.
//
// Main types: System, Env and Command. The one rule: only main and the command
// line hold a whole System; everything below is handed the piece that it needs,
// and nothing changes the process itself (no chdir, no setenv).
package sys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/terrace-iac/terrace/process"
)

// A System is what the program runs in. Real makes that of the process, Test
// one for tests. A System is not changed once made.
type System struct {
	Dir  string   // the working folder, absolute
	Env  Env      // the environment
	Args []string // the command line, with the name that the program was called by

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	Now      func() time.Time
	Terminal Terminal
	// Sleep is how long stores of state pause before they ask again, or until the context is
	// done, whose error it returns then. Nil: as long as they say.
	Sleep func(ctx context.Context, d time.Duration) error
	// Run runs a child process to its end; see Command.
	Run func(ctx context.Context, c Command) error
	// Become runs a program in place of this one, with its standard streams, and returns if
	// that cannot be done: errors.ErrUnsupported where no system can. It may be nil.
	Become func(c Command) error
	// EndChildren kills what Run has started and has not ended, with all its processes, and
	// has Run start nothing more. It may be nil.
	EndChildren func()
	// Interrupts starts to deliver interrupt and termination signals, and that the
	// terminal is gone, and returns how to stop it. Until then a signal ends the process.
	Interrupts func() (c <-chan os.Signal, stop func())
	// Unread starts to drop what is written to Stdout or Stderr once nobody reads that any
	// more, and returns a channel that is closed when that happens. Until then the system
	// may end the process for it. It may be nil.
	Unread func() <-chan struct{}
	// Lost gets the errors of writes to Stdout, but for those that Unread drops. Commands add
	// those of other files with their output. It may be nil.
	Lost *Lost

	// ExpectHeap tells the garbage collector by how many bytes the heap is about to
	// grow. It may be nil, and may be called concurrently.
	ExpectHeap func(bytes int64)
	// LeaveHeap has the garbage collector leave the heap alone as long as it is not that
	// large, for work that makes much more garbage than it keeps. It may be nil.
	LeaveHeap func(bytes int64)
	// LimitHeap has the garbage collector keep the heap smaller than it usually is,
	// for a fifth more processor time. It may be nil.
	LimitHeap func()
	// ShareProcessors has the garbage collector run less often, for up to twice the memory,
	// since plugins need the processors. It may be nil, and may be called concurrently.
	ShareProcessors func()

	// Profile begins to profile the process until stop is called, once. It may be nil
	// where that is not possible.
	Profile func(Profiles) (stop func() error, err error)

	Executable func() (string, error) // the path of the running program
	Host       func() string          // the machine's name, "" if unknown
	User       func() string          // the user's login name, "" if unknown
}

// Terminal says which of the standard streams are terminals.
type Terminal struct {
	In, Out, Err bool
	// Width is the number of columns of the terminal that Stdout or Stderr is,
	// or 0 if neither is one.
	Width func() int
	// Height is the number of its rows, or 0.
	Height func() int
	// ReadSecret reads a line from Stdin without showing it. Valid only if In.
	ReadSecret func() (string, error)
	// Edit makes an editor of lines on the terminal that Stdin and Stdout are. Valid only
	// if In and Out.
	Edit func(complete Completer) LineEditor
	// Keys starts to deliver what is typed as it is typed, unseen, in the bytes that the
	// terminal sends; "" says that the terminal has another size. The channel is closed
	// when nothing more can come. Valid only if In and Out, and once: the reader goes on
	// reading when restore has put the terminal back.
	Keys func() (keys <-chan string, restore func() error, err error)
}

// A Completer answers the tab key: what the line and the place of the cursor become, or
// what there is to choose from.
type Completer func(line string, pos int) (newLine string, newPos int, choices []string)

// A LineEditor reads lines that are edited with the keys of a shell and found again with
// the arrows.
type LineEditor interface {
	// ReadLine reads a line; io.EOF is the end, by Control-C or Control-D.
	ReadLine(prompt string) (string, error)
}

// Real is the system of this process. It fails only where the working folder
// is not known, for instance because it was deleted.
func Real() (*System, error) {
	withoutSamples()
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("cannot find the working folder: %w", err)
	}
	var gc collector
	gc.begin()
	children := new(Children)
	unread := new(unread)
	lost := new(Lost)
	return &System{
		Dir:        dir,
		Env:        Env(os.Environ()),
		Args:       os.Args,
		Stdin:      os.Stdin,
		Stdout:     &stream{os.Stdout, unread, lost},
		Stderr:     &stream{os.Stderr, unread, nil},
		Now:        time.Now,
		Terminal:   realTerminal(),
		Run:        children.Run,
		Become:     become,
		Interrupts: interrupts,
		Unread:     unread.watch,
		Lost:       lost,
		ExpectHeap: gc.expect,
		LeaveHeap:  gc.leave,
		Profile:    profile,
		LimitHeap:  gc.spare,

		ShareProcessors: gc.share,

		Executable: os.Executable,

		EndChildren: children.End,
		Host:        sync.OnceValue(hostName),
		User:        sync.OnceValue(userName),
	}, nil
}

// ErrNoPrograms is what Run returns where no programs may be run.
var ErrNoPrograms = errors.New("the program is not run, because of --no-exec")

// RefusePrograms stands in place of Run where no programs may be run.
func RefusePrograms(context.Context, Command) error { return ErrNoPrograms }

// Join makes a path absolute: a relative one counts from a folder.
func Join(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// Nearest is the file of a name in a folder or the nearest above it, up to the root of the
// repository; "" if there is none.
func Nearest(dir, name string) string {
	for {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		up := filepath.Dir(dir)
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || up == dir {
			return ""
		}
		dir = up
	}
}

func realTerminal() Terminal {
	in, out, errs := int(os.Stdin.Fd()), int(os.Stdout.Fd()), int(os.Stderr.Fd())
	t := Terminal{In: term.IsTerminal(in), Out: term.IsTerminal(out), Err: term.IsTerminal(errs)}
	size := func() (w, h int) {
		for _, fd := range []int{out, errs} {
			if w, h, err := term.GetSize(fd); err == nil && w > 0 {
				return w, h
			}
		}
		return 0, 0
	}
	t.Width = func() int { w, _ := size(); return w }
	t.Height = func() int { _, h := size(); return h }
	t.ReadSecret = func() (string, error) {
		b, err := term.ReadPassword(in)
		return string(b), err
	}
	t.Edit = func(complete Completer) LineEditor { return newLineEditor(in, t.Width, complete) }
	t.Keys = func() (<-chan string, func() error, error) { return readKeys(in) }
	return t
}

func interrupts() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4) // nobody presses faster than it is read
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// Env is an environment.
type Env = process.Env

// ErrInterrupted is what Run returns, wrapped, when the context ended first.
var ErrInterrupted = errors.New("interrupted")
