package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/terrace-iac/terrace/plan"
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

// Only soft needs on a cycle are removed, also if many are joined.
func TestSoftNeeds(t *testing.T) {
	list := func() []plan.Action {
		return []plan.Action{
			0: {Kind: plan.StepDelete}, 1: {Kind: plan.StepDelete, Needs: []int{0}}, 2: {Kind: plan.StepDelete}, 3: {Kind: plan.StepDelete},
			4: {Kind: plan.StepJoin, Change: -1, Needs: []int{1, 2, 3}},
		}
	}
	for _, test := range []struct {
		name string
		soft map[int][]int
		want [][]int
	}{
		{"no cycle", map[int][]int{1: {2}, 2: {3}}, [][]int{nil, {0, 2}, {3}, nil, {1, 2, 3}}},
		{"one of two", map[int][]int{0: {1}, 2: {3}}, [][]int{nil, {0}, {3}, nil, {1, 2, 3}}},
		{"among themselves", map[int][]int{2: {3}, 3: {2}, 1: {3}}, [][]int{nil, {0, 3}, nil, nil, {1, 2, 3}}},
		{"a join", map[int][]int{0: {4}}, [][]int{{5}, {0}, nil, nil, {1, 2, 3}, {2, 3}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &actionList{out: list(), soft: test.soft}
			b.finish()
			var got [][]int
			for _, a := range b.out {
				got = append(got, a.Needs)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if !acyclic(b.out) {
				t.Error("there is a cycle")
			}
		})
	}
}
