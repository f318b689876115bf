package arguments

import (
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/unit"
)

// If two blocks set an environment variable, the later one is used, whatever the values are.
func TestEnvironment(t *testing.T) {
	x := Read([]unit.ExtraArguments{
		{Commands: []string{"plan"}, EnvVars: map[string]string{"KEY": "z", "A": "1"}},
		{Commands: []string{"plan"}, EnvVars: map[string]string{"KEY": "a"}},
		{Commands: []string{"apply"}, EnvVars: map[string]string{"KEY": "b"}},
	}, strings.Clone, "plan")
	if got := sys.Env(nil).With(x.Env...).Get("KEY"); got != "a" {
		t.Errorf("KEY is %q", got)
	}
}

// Variable files and -var arguments keep the order of their blocks.
func TestOrder(t *testing.T) {
	x := Read([]unit.ExtraArguments{
		{Commands: []string{"plan"}, RequiredVarFiles: []string{"first.tfvars"}, Arguments: []string{"-lock-timeout", "5m"}},
		{Commands: []string{"plan"}, Arguments: []string{"-var", "a=flag", "-var-file=second.tfvars", "-bogus"}},
	}, func(name string) string { return "/u/" + name }, "plan")
	if want := []workdir.VarFlag{{File: true, Value: "/u/first.tfvars"}, {Value: "a=flag"}, {File: true, Value: "/u/second.tfvars"}}; !slices.Equal(x.Vars, want) {
		t.Errorf("values come from %v", x.Vars)
	}
	if got := strings.Join(x.Words, " "); got != "-lock-timeout=5m -var-file=/u/first.tfvars -var=a=flag -var-file=/u/second.tfvars -bogus" {
		t.Errorf("the words are %s", got)
	}
	if x.Lock == nil || x.Lock.Timeout.Minutes() != 5 || !slices.Equal(x.Other, []string{"-bogus"}) {
		t.Errorf("%+v", x)
	}
}
