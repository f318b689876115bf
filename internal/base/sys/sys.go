// Package sys contains all effects on the operating system: working directory,
// environment, standard streams, clock, terminal, signals, host and user names, and child
// processes.
//
// Main types: System, Env and Command. The one rule: only main and the command line hold
// a System. All other packages receive the parts that they need, and no code changes the
// process itself (no chdir, no setenv).
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

	"github.com/terrace-iac/terrace/internal/base/process"
)

// System is the environment of the program. Real returns that of the process, Test one
// for tests. A System is immutable.
type System struct {
	Dir  string   // the working directory, absolute
	Env  Env      // the environment
	Args []string // the command line, including the program's name

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	Now      func() time.Time
	Terminal Terminal
	// Sleep pauses a state store before a retry. If ctx ends first, it returns the error of
	// ctx. nil means the real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// Run runs a child process and waits for its end; see Command.
	Run func(ctx context.Context, c Command) error
	// Become replaces this process with a program, which keeps the standard streams. It
	// returns only if that fails: errors.ErrUnsupported if the system cannot do it. It may be nil.
	Become func(c Command) error
	// EndChildren kills all running children with their process groups. Later calls of Run
	// fail. It may be nil.
	EndChildren func()
	// Interrupts returns a channel for interrupt, termination and hangup signals, until stop
	// is called. Without Interrupts, a signal ends the process.
	Interrupts func() (c <-chan os.Signal, stop func())
	// Unread returns a channel that is closed when the reader of Stdout or Stderr closes the
	// pipe; later output is dropped. Without Unread, the system may end the process then. It
	// may be nil.
	Unread func() <-chan struct{}
	// Lost receives the errors of writes to Stdout, except those dropped by Unread.
	// Commands add the errors of other output files. It may be nil.
	Lost *Lost

	// ExpectHeap announces that the heap will grow by the given number of bytes. It may be
	// nil, and may be called concurrently.
	ExpectHeap func(bytes int64)
	// LeaveHeap sets the minimum heap size for a garbage collection, for work that creates
	// much more garbage than it keeps. It may be nil.
	LeaveHeap func(bytes int64)
	// HoldHeap is LeaveHeap for a server that must answer quickly: it also makes the system provide the memory
	// before it returns. It may be nil.
	HoldHeap func(bytes int64)
	// LimitHeap keeps the heap smaller, for a fifth more processor time. It may be nil.
	LimitHeap func()
	// ShareProcessors reduces garbage collections, for up to twice the memory, because
	// plugins need the processors. It may be nil, and may be called concurrently.
	ShareProcessors func()

	// LowerPriority makes the system prefer other processes, also those of the same user, while the processors are
	// busy. It cannot be undone, and holds for the processes that this one starts. It may be nil.
	LowerPriority func()

	// Profile starts profiling. Call stop once. Profile may be nil.
	Profile func(Profiles) (stop func() error, err error)

	Process int // ID of this process
	// Alive reports whether a process with this ID runs on this machine, or may run.
	Alive func(process int) bool

	Executable func() (string, error) // the path of the running program
	Host       func() string          // the machine's name, "" if unknown
	User       func() string          // the user's login name, "" if unknown
}

// Terminal describes which standard streams are terminals.
type Terminal struct {
	In, Out, Err bool
	// Width returns the number of columns of the terminal at Stdout or Stderr, or 0 if
	// neither is a terminal.
	Width func() int
	// Height returns the number of rows, or 0.
	Height func() int
	// ReadSecret reads a line from Stdin without showing it. Valid only if In.
	ReadSecret func() (string, error)
	// Edit returns a line editor on the terminal at Stdin and Stdout. Valid only if In and Out.
	Edit func(complete Completer) LineEditor
	// Keys returns a channel of typed keys, without echo, as the bytes that the terminal
	// sends. "" means that the terminal's size changed. The channel is closed at the end of
	// the input. Valid only if In and Out, and only once: the reader keeps reading after
	// restore.
	Keys func() (keys <-chan string, restore func() error, err error)
}

// Completer handles the tab key. It returns the new line and cursor position, or the
// possible completions.
type Completer func(line string, pos int) (newLine string, newPos int, choices []string)

// LineEditor reads lines with a shell's editing keys and history.
type LineEditor interface {
	// ReadLine reads a line. It returns io.EOF after Control-C or Control-D.
	ReadLine(prompt string) (string, error)
}

// Real returns the system of this process. It fails only if the working directory is
// unknown, for example because it was deleted.
func Real() (*System, error) {
	withoutSamples()
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("cannot find the working directory: %w", err)
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
		HoldHeap:   gc.hold,
		Profile:    profile,
		LimitHeap:  gc.spare,

		ShareProcessors: gc.share,
		LowerPriority:   lowerPriority,

		Process: os.Getpid(),
		Alive:   processExists,

		Executable: os.Executable,

		EndChildren: children.End,
		Host:        sync.OnceValue(hostName),
		User:        sync.OnceValue(userName),
	}, nil
}

// ErrNoPrograms is returned by RefusePrograms.
var ErrNoPrograms = errors.New("the program is not run, because of --no-exec")

// RefusePrograms replaces Run if no programs may run.
func RefusePrograms(context.Context, Command) error { return ErrNoPrograms }

// ErrSkipped is returned by SkipPrograms.
var ErrSkipped = errors.New("the program is not run")

// SkipPrograms replaces Run if results of programs are unknown values. RefusePrograms makes them
// errors.
func SkipPrograms(context.Context, Command) error { return ErrSkipped }

// Join returns name as an absolute path. A relative name is relative to dir.
func Join(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// RelativeTo returns path relative to dir, with slashes. If that is impossible, it returns path.
func RelativeTo(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// Nearest returns the path of the file called name in dir or in the nearest parent, up to
// the root of the repository, or "".
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
	c := make(chan os.Signal, 4) // the buffer is larger than the number of signals that arrive before a read
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // it is ignored under nohup
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

// ErrInterrupted is returned by Run, wrapped, if the context ends first.
var ErrInterrupted = errors.New("interrupted")
