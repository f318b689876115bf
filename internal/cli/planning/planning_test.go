package planning_test

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/planning"
	"github.com/terrace-iac/terrace/plan"
)

// The flags of a plan become its options. An invalid address is an error.
func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		words string
		want  string // error
		check func(plan.Options) bool
	}{
		{"", "", func(o plan.Options) bool { return o.Mode == plan.Normal && !o.SkipRefresh && len(o.Targets) == 0 }},
		{"-refresh-only", "", func(o plan.Options) bool { return o.Mode == plan.RefreshOnly }},
		{"-target=x_thing.a -target=module.m -refresh=false", "", func(o plan.Options) bool { return len(o.Targets) == 2 && o.SkipRefresh }},
		{"-replace=x_thing.a[0]", "", func(o plan.Options) bool { return len(o.Replace) == 1 }},
		{"-target=0", "0", nil},
		{"-replace=0", "0", nil},
	} {
		var f planning.Flags
		if _, _, err := f.Planning(false).Parse(strings.Fields(tt.words), nil, false); err != nil {
			t.Fatal(tt.words, err)
		}
		o, ds := f.Options(command.New(t.Context(), sys.Test(t.TempDir()).System, nil, nil))
		if ds.HasErrors() != (tt.want != "") || tt.want != "" && !strings.Contains(ds.Err().Error(), tt.want) || tt.check != nil && !tt.check(o) {
			t.Errorf("%q: %+v %v", tt.words, o, ds.Err())
		}
	}
}

// Without a cache directory, the times of reads are not stored. Otherwise they are stored below it.
func TestReadLogs(t *testing.T) {
	if got := planning.ReadLogs(command.New(t.Context(), sys.Test(t.TempDir()).System, nil, nil)); got != "" {
		t.Errorf("%q", got)
	}
	home := t.TempDir()
	if got := planning.ReadLogs(command.New(t.Context(), sys.Test(t.TempDir(), "HOME="+home, "XDG_CACHE_HOME="+home).System, nil, nil)); !strings.HasPrefix(got, home) {
		t.Errorf("%q", got)
	}
}
