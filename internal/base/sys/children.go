package sys

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
)

// Children starts child processes and can kill all running ones, so that a second
// interrupt ends the program without leaving processes behind. The zero value is ready to
// use. Its methods may be called concurrently.
type Children struct {
	mu      sync.Mutex
	running map[*exec.Cmd]bool
	ended   bool
}

// Run is like the function Run. After End, it only starts commands whose context is from
// Cleaning.
func (g *Children) Run(ctx context.Context, c Command) error {
	return run(ctx, c, g)
}

// End kills all running children with their process groups.
func (g *Children) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for cmd := range g.running {
		signalGroup(cmd, true)
	}
}

// cleaning is the context key of Cleaning.
type cleaning struct{}

// Cleaning returns a context in which Run starts programs even after End: programs that delete
// temporary data of the process.
func Cleaning(ctx context.Context) context.Context {
	return context.WithValue(ctx, cleaning{}, true)
}

// start starts a child and adds it to g.
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

// forget removes a child that has ended and whose output was read completely.
func (g *Children) forget(cmd *exec.Cmd) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, cmd)
}
