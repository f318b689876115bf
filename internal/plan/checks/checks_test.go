package checks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/state"
)

func TestChecksMerge(t *testing.T) {
	one := func(object string, ss ...eval.Status) Result {
		r := Result{kind: state.CheckResource, config: "x.a", object: object}
		for _, s := range ss {
			r.outcomes = append(r.outcomes, eval.Outcome{Status: s, Message: "m"})
		}
		return r
	}
	planned := Group([]Result{one("x.a[0]", eval.Pass), one("x.a[1]", eval.Pass, eval.Unknown)})
	if planned[0].Status != state.CheckUnknown {
		t.Errorf("planned: %s", planned[0].Status)
	}
	got := Merge(planned, []Result{one("x.a[1]", eval.Pass), one("x.a[1]", eval.Fail)})
	want := []state.CheckResult{{Kind: state.CheckResource, Addr: "x.a", Status: state.CheckFail, Objects: []state.CheckObject{
		{Addr: "x.a[0]", Status: state.CheckPass}, {Addr: "x.a[1]", Status: state.CheckFail, Failures: []string{"m"}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if planned[0].Objects[1].Status != state.CheckUnknown {
		t.Error("merging changed what was planned")
	}
}
