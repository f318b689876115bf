package sys

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
)

// Children run child processes and know which of them are running, so that they can be
// ended all at once: whoever ends the process at a second interrupt leaves nothing behind
// that it started. The zero value has none. Its methods may be called concurrently.
type Children struct {
	mu      sync.Mutex
	running map[*exec.Cmd]bool
	ended   bool
}

// Run is the function Run, until End is called; then nothing is started any more but what
// takes away what must not stay (Cleaning).
func (g *Children) Run(ctx context.Context, c Command) error {
	return run(ctx, c, g)
}

// End kills what is running, each child with its process group.
func (g *Children) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for cmd := range g.running {
		signalGroup(cmd, true)
	}
}

// cleaning is the key of contexts that Cleaning makes.
type cleaning struct{}

// Cleaning is a context in which Run starts programs after the end of all others: those that
// take away what must not outlive the process.
func Cleaning(ctx context.Context) context.Context {
	return context.WithValue(ctx, cleaning{}, true)
}

// start starts a child, which is one of g until forget.
func (g *Children) start(ctx context.Context, cmd *exec.Cmd) error {
	if g == nil {
		return cmd.Start()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended && ctx.Value(cleaning{}) == nil {
		return fmt.Errorf("%s: %w", cmd.Args[0], ErrInterrupted)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if g.running == nil {
		g.running = map[*exec.Cmd]bool{}
	}
	g.running[cmd] = true
	return nil
}

// forget takes back a child that ended and whose output was read to its end.
func (g *Children) forget(cmd *exec.Cmd) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, cmd)
}
