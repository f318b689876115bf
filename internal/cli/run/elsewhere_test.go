package run

import (
	"context"
	"errors"
	"testing"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/sys"
)

// TestProgramThatDoesNotStart shows that what is sent to a program that could not be started
// fails with the reason.
func TestProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	missing := errors.New("not found in PATH")
	fake := sys.Test(t.TempDir())
	c := command.New(fake.System, nil, nil)
	c.Run = func(context.Context, sys.Command) error { return missing }
	link, _, stop := talk(t.Context(), c)
	if err := link.Send(remote.Message{Note: "hello"}); !errors.Is(err, missing) {
		t.Errorf("sending failed with %v, want %v", err, missing)
	}
	if err := stop(); !errors.Is(err, missing) {
		t.Errorf("it ended with %v, want %v", err, missing)
	}
}
