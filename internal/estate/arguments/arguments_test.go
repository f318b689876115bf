package arguments

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
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

// Flags of plans have the same meaning as on the command line. Flags that only a command in one
// directory supports are listed.
func TestPlanFlags(t *testing.T) {
	for _, c := range []struct {
		words string
		want  plan.Options
		other string
	}{
		{words: "-refresh=false", want: plan.Options{SkipRefresh: true}},
		{words: "--refresh=config", want: plan.Options{MinimalRefresh: true}},
		{words: "-refresh=false -refresh", want: plan.Options{}},
		{words: "-refresh=no", other: "-refresh=no"},
		{words: "-minimal-refresh -minimal-data=true -refresh-max-age 10m", want: plan.Options{MinimalRefresh: true, MinimalData: true, RefreshMaxAge: 10 * time.Minute}},
		{words: "-refresh-max-age=-1m", want: plan.Options{RefreshMaxAge: -time.Minute}, other: "-refresh-max-age=-1m"},
		{words: "-compact-warnings -no-color=false -input"},
		{words: "-target=a.b..", want: plan.Options{Targets: []addr.Target{{}}}, other: "-target=a.b.."},
		{words: "-out p -parallelism=0 -backend-config=x", other: "-out p -parallelism=0 -backend-config=x"},
		{words: "-refresh=false -- file -lock=false", want: plan.Options{SkipRefresh: true}, other: "-- file -lock=false"},
	} {
		x := Read([]unit.ExtraArguments{{Commands: []string{"plan"}, Arguments: strings.Fields(c.words)}}, strings.Clone, "plan")
		if got := x.Plan(plan.Options{}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", c.words, got)
		}
		if got := strings.Join(x.Other, " "); got != c.other {
			t.Errorf("%s: %q is not available, instead of %q", c.words, got, c.other)
		}
	}
}

// Words of init are those of the environment, then those of the blocks.
func TestInit(t *testing.T) {
	x, ds := Init(sys.Env{"TF_CLI_ARGS_init=-upgrade -backend-config key=a"}, []unit.ExtraArguments{{Commands: []string{"init"}, Arguments: []string{"-backend-config=key=b", "-plugin-dir", "p"}}}, strings.Clone)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	if got := strings.Join(x.Words, " "); got != "-upgrade -backend-config=key=a -backend-config=key=b -plugin-dir p" {
		t.Errorf("the words are %s", got)
	}
	if !slices.Equal(x.Backend, []string{"key=a", "key=b"}) {
		t.Errorf("the backend gets %q", x.Backend)
	}
}
