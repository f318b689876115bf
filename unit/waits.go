package unit

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// A Wait is a read of an output of another unit that is not known yet.
type Wait struct {
	ID  string       // of the other unit
	Ref string       // such as dependency.net.outputs.id
	At  source.Range // the range of the reference
}

// Waits returns the unknown outputs that one part of the unit, such as remote_state, reads,
// sorted by range. For inputs, see Setting.Waits.
func (u *Unit) Waits(t *demand.Task, part string) []Wait {
	c := u.on(t, true)
	if n := u.field(c, part); n != nil {
		n.value(c)
	}
	return c.facts.waiting()
}

// waiting returns the list of waits, sorted.
func (f *facts) waiting() []Wait {
	if f == nil || len(f.waits) == 0 {
		return nil
	}
	out := make([]Wait, len(f.waits))
	for i, w := range f.waits {
		out[i] = *w
	}
	slices.SortFunc(out, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.At.Filename, b.At.Filename), cmp.Compare(a.At.Start.Byte, b.At.Start.Byte), cmp.Compare(a.Ref, b.Ref))
	})
	return out
}

// readsOutput records a reference to an output if that output is not known. n is the node
// before step i, and next is the node after it.
func (c *evaluator) readsOutput(n, next node, ref hcl.Traversal, i int) {
	if !c.full {
		return
	}
	var target DependencyID
	switch n := n.(type) {
	case *outputsNode:
		t, ok := n.d.target(c)
		if !ok {
			return
		}
		target = t
	case *moduleOutputs:
		target = n.id()
	default:
		return
	}
	if v, ok := next.(valueNode); !ok || v.v.IsWhollyKnown() {
		return
	}
	c.facts = c.facts.with(&facts{waits: []*Wait{{ID: string(target), Ref: syntax.RefText(ref[:i+1]), At: ref.SourceRange()}}})
}
