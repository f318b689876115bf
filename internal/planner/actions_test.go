package planner

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/plan"
)

func TestAcyclic(t *testing.T) {
	for _, c := range []struct {
		needs [][]int
		want  bool
	}{
		{nil, true}, {[][]int{{}, {0}, {0, 1}}, true}, {[][]int{{1}, {0}}, false}, {[][]int{{}, {2}, {3}, {1}}, false}, {[][]int{{0}}, false},
	} {
		var list []plan.Action
		for _, n := range c.needs {
			list = append(list, plan.Action{Needs: n})
		}
		if got := acyclic(list); got != c.want {
			t.Errorf("%v: %t", c.needs, got)
		}
	}
}
