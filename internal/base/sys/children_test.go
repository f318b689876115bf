package sys

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

func TestChildrenEnd(t *testing.T) {
	g := new(Children)
	sleep := Command{Path: "sleep", Args: []string{"300"}, Dir: t.TempDir(), Env: Env(os.Environ())}
	if _, err := Prepare(sleep); err != nil {
		t.Skip("SKIP: there is no program sleep")
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Run(context.Background(), sleep) }()
	for running := 0; running == 0; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		running = len(g.running)
		g.mu.Unlock()
	}
	g.End()
	if err := <-ended; err == nil {
		t.Error("a child that was killed ended well")
	}
	if err := g.Run(context.Background(), sleep); !errors.Is(err, ErrInterrupted) {
		t.Errorf("a child was started after the end: %v", err)
	}
	soon := sleep
	soon.Args = []string{"0"}
	if err := g.Run(Cleaning(context.Background()), soon); err != nil {
		t.Errorf("what takes things away was not started after the end: %v", err)
	}
	if len(g.running) != 0 {
		t.Errorf("%d children are left", len(g.running))
	}
}
