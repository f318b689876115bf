package sys

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"
)

// Fake is a System for tests that keeps what was written to its streams.
type Fake struct {
	*System
	Out, Err *Buffer
	// Interrupt delivers an interrupt to all listeners.
	Interrupt func()
}

// Test returns a system in the directory dir with only the given environment, empty
// input, captured output, no terminal, the fixed time of noon UTC on January 2nd, 2030,
// host "host", user "user", and real child processes.
func Test(dir string, env ...string) *Fake {
	signals := make(chan os.Signal, 4)
	f := &Fake{Out: new(Buffer), Err: new(Buffer)}
	f.Interrupt = func() { signals <- os.Interrupt }
	noon := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	f.System = &System{
		Dir:    dir,
		Env:    Env(env),
		Args:   []string{"terrace"},
		Stdin:  strings.NewReader(""),
		Stdout: f.Out,
		Stderr: f.Err,
		Now:    func() time.Time { return noon },
		Terminal: Terminal{
			Width:      func() int { return 0 },
			Height:     func() int { return 0 },
			ReadSecret: func() (string, error) { return "", errors.New("not a terminal") },
		},
		Run:        Run,
		Interrupts: func() (<-chan os.Signal, func()) { return signals, func() {} },
		Process:    1,
		Alive:      func(int) bool { return false },
		Executable: func() (string, error) { return "terrace", nil },
		Host:       func() string { return "host" },
		User:       func() string { return "user" },
	}
	return f
}

// NoChildren is a Run function that starts nothing and returns an error.
func NoChildren(context.Context, Command) error {
	return errors.New("child processes cannot be started here")
}

// Buffer is a bytes.Buffer whose methods may be called concurrently. The zero Buffer is
// empty.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
