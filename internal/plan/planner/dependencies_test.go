package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
)

// TestGather checks that gather returns the sorted union of sets in any order, and leaves no
// data for the next call.
func TestGather(t *testing.T) {
	set := func(ids ...int32) *depSet { return &depSet{ids: ids} }
	for _, c := range []struct {
		name   string
		direct *depSet
		used   []dependency
		want   []int32
	}{
		{"one", set(3), []dependency{{3, set(1, 2)}}, []int32{1, 2, 3}},
		{"one within another", set(2, 3), []dependency{{2, set(1)}, {3, set(1, 2)}}, []int32{1, 2, 3}},
		{"apart", set(4, 7), []dependency{{4, set(1, 9)}, {7, set(0, 9)}}, []int32{0, 1, 4, 7, 9}},
		{"of another instance of the block", set(4), []dependency{{4, set(1)}, {4, set(1, 4)}}, []int32{1, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDependencies(nil, 0)
			d.names = make([]addr.ConfigResource, 10)
			for range 2 {
				if diff := cmp.Diff(c.want, d.gather(c.direct, c.used)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
