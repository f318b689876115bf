package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/estate/remote"
)

// TestProgramThatDoesNotStart checks that a send to a program that could not be started fails
// with the reason.
func TestProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	missing := errors.New("not found in PATH")
	fake := sys.Test(t.TempDir())
	c := command.New(t.Context(), fake.System, nil, nil)
	c.Run = func(context.Context, sys.Command) error { return missing }
	link, _, stop := talk(t.Context(), c)
	if err := link.Send(remote.Message{Note: "hello"}); !errors.Is(err, missing) {
		t.Errorf("sending failed with %v, want %v", err, missing)
	}
	if err := stop(); !errors.Is(err, missing) {
		t.Errorf("it ended with %v, want %v", err, missing)
	}
}

// TestProgramThatEnds checks that attach reports why terrace-worker ended, and not only EOF.
func TestProgramThatEnds(t *testing.T) {
	t.Parallel()
	fake := sys.Test(t.TempDir())
	c := command.New(t.Context(), fake.System, nil, nil)
	c.Run = func(_ context.Context, p sys.Command) error {
		_, _ = bufio.NewReader(p.Stdin).ReadString('\n')
		fmt.Fprintln(p.Stderr, "out of memory")
		return errors.New("exit status 2")
	}
	_, ds := jobOf(t.Context(), c, &unitflags.Flags{}, "run-1")
	if len(ds) != 1 || !strings.Contains(ds[0].Detail, "which failed: exit status 2 out of memory.") {
		t.Errorf("it is %v", ds)
	}
}
