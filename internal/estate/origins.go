package estate

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/origin"
	"github.com/zclconf/go-cty/cty"
)

// An Input is an input of a unit, or one part of it, and where that comes from.
type Input struct {
	Name string // as in an expression, behind "inputs."
	Of   string // the name of the input as a whole
	*origin.Explanation
}

// mostParts is how many parts of an input are told apart.
const mostParts = 24

// InputOrigins tells where the inputs of a unit come from, by name. wanted is as in
// unit.Unit.Inputs. Of an input that several files have a part in, its parts follow.
// What cannot be computed has no steps. It may be called after a run, whose outputs
// it sees then.
func (e *Estate) InputOrigins(ctx context.Context, u *Unit, wanted func(name string) bool) []Input {
	t := e.task(ctx)
	settings, _ := u.Inputs(t, wanted) // the run has told what is wrong with them
	var out []Input
	for _, s := range settings {
		if s.Name == "" { // all of them are unknown
			continue
		}
		path := stepText(s.Name)
		whole, _ := u.Explain(t, "inputs"+path)
		out = append(out, Input{Name: shortPath(path), Of: s.Name, Explanation: whole})
		out = append(out, e.parts(t, u, s.Name, whole)...)
	}
	return out
}

// Declared are the variables of a unit's module, nil where that is not on this machine
// or cannot be read.
func (e *Estate) Declared(ctx context.Context, u *Unit) map[string]*config.Variable {
	m := e.localModule(e.task(ctx), u)
	if m == nil {
		return nil
	}
	return m.Variables
}

// parts are those of an input that is an object, if they come from different files.
func (e *Estate) parts(t *demand.Task, u *Unit, name string, whole *origin.Explanation) []Input {
	if len(whole.Steps) == 0 {
		return nil
	}
	v, marks := whole.Value, whole.Sensitive
	if v == cty.NilVal {
		return nil
	}
	ty := v.Type()
	if marks || !v.IsKnown() || v.IsNull() || !ty.IsObjectType() && !ty.IsMapType() || v.LengthInt() > mostParts {
		return nil
	}
	file := ""
	if at := whole.Steps[len(whole.Steps)-1].At; at != nil {
		file = at.File
	}
	var out []Input
	several := false
	for it := v.ElementIterator(); it.Next(); {
		key, _ := it.Element()
		path := stepText(name) + stepText(key.AsString())
		x, _ := u.Explain(t, "inputs"+path)
		for _, s := range x.Steps {
			several = several || s.At != nil && s.At.File != file
		}
		out = append(out, Input{Name: shortPath(path), Of: name, Explanation: x})
	}
	if !several {
		return nil
	}
	return out
}

// stepText is a step of a path as an expression has it.
func stepText(name string) string {
	if hclsyntax.ValidIdentifier(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}

func shortPath(path string) string {
	if path[0] == '.' {
		return path[1:]
	}
	return path
}
