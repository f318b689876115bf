package run

import (
	"slices"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// TestTravels checks that the worker learns by which name the client was started.
func TestTravels(t *testing.T) {
	env := sys.Env{"HOME=/root", "AWS_SECRET_ACCESS_KEY=s", "TF_VAR_a=1", "TG_FEATURE=x=y"}
	for _, c := range []struct {
		env  sys.Env
		as   string
		want []string
	}{
		{env, "", []string{"TF_VAR_a=1", "TG_FEATURE=x=y"}},
		{env, "terragrunt", []string{"TERRACE_AS=terragrunt", "TF_VAR_a=1", "TG_FEATURE=x=y"}},
		{sys.Env{"TERRACE_AS=terragrunt1.1.3"}, "terragrunt", []string{"TERRACE_AS=terragrunt1.1.3"}},
	} {
		if got := travels(c.env, c.as); !slices.Equal(got, c.want) {
			t.Errorf("as %q: %q, want %q", c.as, got, c.want)
		}
	}
}
