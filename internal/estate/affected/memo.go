package affected

import (
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/source"
)

// # Differences that many units have
//
// A changed line in a file that many units include causes the same difference in each of them. An
// explanation is the larger part of the work for a difference, so equal differences are explained
// once. Two differences are equal if the values are, and if they certainly have the same cause and
// the same secrets:
//
//   - An input that is set in a file outside of the unit, by an expression that only leads through
//     local values of that file.
//   - A part of a module that is the same in both revisions, if one line causes all differences in
//     the inputs of the unit: the difference in the module then has the same cause.
//
// Values that contain secrets, and modules with sensitive variables, are always explained.

// A memo contains the descriptions of differences. The description of a part of a module is valid
// apart from its cause.
type memo = parallel.Cache[memoKey, described]

// A described is the description of a difference. shared is false if it is only valid for one unit.
type described struct {
	Change
	shared bool
}

type memoKey struct {
	content       outline.Print // zero for a part of a unit
	address, path string
	action        outline.Action
	old, now      partKey
}

// A partKey identifies the value of a part, and the expression that sets an input.
type partKey struct {
	set   bool
	print outline.Print // zero if the value is not known
	at    source.Range
}

// key returns the key of a difference. ok is false if it must be explained for this unit alone.
func (c *comparer) key(d outline.Difference, p outline.PartDifference) (key memoKey, ok bool) {
	if c.memo == nil || c.sensitive {
		return key, false
	}
	own := d.Kind == outline.Unit
	if own && (d.Addr != "inputs" || strings.ContainsAny(strings.TrimPrefix(p.Path, "."), ".[")) || !own && (c.common == nil || c.content == outline.Print{}) {
		return key, false
	}
	key = memoKey{address: d.Addr, path: p.Path, action: p.Action}
	if !own {
		key.content = c.content
	}
	for i, x := range []*outline.Part{p.Old, p.New} {
		if x == nil {
			continue
		}
		if x.Marked || x.Secret || own && (x.Fixed || x.Unknown || c.inUnit(i, x.At.Filename)) {
			return key, false
		}
		k := partKey{set: true}
		if !x.Unknown {
			k.print = x.Print
		}
		if own {
			k.at = x.At
		}
		if i == 0 {
			key.old = k
		} else {
			key.now = k
		}
	}
	return key, true
}

// inUnit reports whether a file is in the directory of the unit. i is 0 for the base and 1 for the
// head.
func (c *comparer) inUnit(i int, file string) bool {
	return file == "" || strings.HasPrefix(file, c.dirs[i]+string(filepath.Separator))
}

// plain reports whether an explanation leads through local values of one file only.
func plain(x *explanation.Explanation) bool {
	if x == nil {
		return true
	}
	for _, s := range x.Steps {
		switch s.Kind {
		case explanation.Input, explanation.Local, explanation.Item:
		default:
			return false
		}
		if s.At == nil || s.At.File != x.Steps[0].At.File || s.Computed {
			return false
		}
	}
	return true
}
