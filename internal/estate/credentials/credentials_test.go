package credentials

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/unit"
)

// A failed program is run again, and a failed role is assumed again. Session credentials are
// cached for sessionLife, and those of a role for half of their lifetime.
func TestAskedAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	runs, roles, down := 0, 0, true
	m := unit.Machine{Now: func() time.Time { return now }, Run: func(_ context.Context, c sys.Command) error {
		runs++
		if down {
			return errors.New("down")
		}
		fmt.Fprint(c.Stdout, `{"awsCredentials": {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "SESSION_TOKEN": "t"}}`)
		return nil
	}}
	c := New(Settings{Command: []string{"auth"}, AssumeRole: func(context.Context, sys.Env, Role) ([]string, error) {
		if roles++; down {
			return nil, errors.New("down")
		}
		return []string{fmt.Sprint("ROLE=", roles)}, nil
	}}, m)
	role := Role{ARN: "arn", Seconds: 1200}
	if _, _, ds := c.get(t.Context(), "dir", Role{}); !ds.HasErrors() {
		t.Error("no error of the program")
	}
	if _, _, ds := c.assume(t.Context(), nil, role); !ds.HasErrors() {
		t.Error("no error of the role")
	}
	down = false
	for _, at := range []struct {
		after       time.Duration
		runs, roles int
	}{{0, 2, 2}, {9 * time.Minute, 2, 2}, {10 * time.Minute, 2, 3}, {14 * time.Minute, 2, 3}, {15 * time.Minute, 3, 3}} {
		now = time.Unix(1000, 0).Add(at.after)
		if _, _, ds := c.get(t.Context(), "dir", Role{}); ds.HasErrors() || runs != at.runs {
			t.Errorf("after %s: %d runs, want %d: %v", at.after, runs, at.runs, ds)
		}
		if _, _, ds := c.assume(t.Context(), nil, role); ds.HasErrors() || roles != at.roles {
			t.Errorf("after %s: %d roles, want %d: %v", at.after, roles, at.roles, ds)
		}
	}
}
