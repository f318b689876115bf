package origin

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A reader evaluates expressions where they stand, and finds the instances and schemas that
// they belong to. It decides nothing about what is shown.
type reader struct {
	t         *demand.Task
	e         *Explainer
	unchecked []addr.Provider // as in Explanation
}

// A frame is where an expression stands: what its references mean and how they
// are evaluated.
type frame struct {
	mod   *eval.Module // nil in a variable file and in a unit file
	scope lang.Scope   // nil in a variable file and in a unit file

	unit  Scope                // where a unit file's expression stands, or nil
	names map[string]cty.Value // what iterations define there

	// Of an argument of a repeated block: the argument that repeats it, and the
	// key of the instance that is meant; the zero key stands for all of them.
	repeat  *config.Setting
	forEach bool
	key     addr.Key

	self *eval.Resource // what self means in a provisioner or connection, or nil

	iter  *iteration // the innermost dynamic block or for expression, or nil
	guard guard      // of the arguments of the block
}

// an iteration is one turn of a dynamic block or for expression.
type iteration struct {
	name    string // of a dynamic block's iterator; "" for an expression
	keyVar  string // of an expression; may be ""
	valVar  string
	forEach hcl.Expression
	at      *frame // where for_each is evaluated
	n       int    // which element, in order
	key     cty.Value
	under   *iteration
}

// repeats reports whether an address names what a repeated block gives each
// instance: each.key, each.value or count.index.
func (f *frame) repeats(path []step) bool {
	if f.repeat == nil || len(path) < 2 || path[0].brackets {
		return false
	}
	if f.forEach {
		return path[0].name() == "each" && (path[1].name() == "key" || path[1].name() == "value")
	}
	return path[0].name() == "count" && path[1].name() == "index"
}

func (f *frame) iterator(name string) *iteration {
	for it := f.iter; it != nil; it = it.under {
		if it.name == name || it.valVar == name || it.keyVar == name {
			return it
		}
	}
	return nil
}

// inside is the frame of one turn: what the turn stands for, and its key, are
// given by name.
func (f *frame) inside(it *iteration, names map[string]cty.Value) *frame {
	inner := *f
	it.under = f.iter
	inner.iter = it
	if f.unit != nil {
		inner.names = maps.Clone(f.names)
		if inner.names == nil {
			inner.names = map[string]cty.Value{}
		}
		maps.Copy(inner.names, names)
		return &inner
	}
	for name, v := range names {
		inner.scope = iterScope{inner.scope, name, v}
	}
	return &inner
}

// path is what a reference by one of the iteration's names means, as the steps
// behind NAME of a dynamic block: key or value, and the rest.
func (it *iteration) path(ref []step) []step {
	switch name := ref[0].name(); {
	case it.name != "":
		return ref[1:]
	case name == it.valVar:
		return join([]step{nameStep("value")}, ref[1:])
	}
	return join([]step{nameStep("key")}, ref[1:])
}

// named is how the text calls the key or the value of an iteration.
func (it *iteration) named(what string) string {
	switch {
	case it.name != "":
		return it.name + "." + what
	case what == "key":
		return it.keyVar
	}
	return it.valVar
}

// iterScope resolves one name of an iteration.
type iterScope struct {
	lang.Scope
	name  string
	value cty.Value
}

func (s iterScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if ref.RootName() == s.name {
		return s.value, 1, nil
	}
	return s.Scope.Resolve(t, ref, at)
}

// moduleFrame is where locals, outputs and the like of a module are evaluated.
func moduleFrame(m *eval.Module) *frame { return &frame{mod: m, scope: m} }

// inputFrame is where the inputs of a module instance are evaluated.
func inputFrame(m *eval.Module) *frame {
	f := &frame{mod: m.Parent(), scope: m.CallScope()}
	f.repeat, f.forEach = repetition(m.CalledBy().Config().Repeat)
	if all := m.Addr.Steps(); len(all) > 0 {
		f.key = all[len(all)-1].Key
	}
	return f
}

// resourceFrame is where the arguments of a resource are evaluated, for one
// instance, or for all of them if there is none with that key.
func (r *reader) resourceFrame(res *eval.Resource, k addr.Key) *frame {
	f := &frame{mod: res.Mod, scope: res.AnyScope(), key: k, guard: r.resourceGuard(res)}
	f.repeat, f.forEach = repetition(res.Config().Repeat)
	if d := r.instance(res, k); d != nil {
		f.scope = d.Scope(cty.NilVal)
	}
	return f
}

func (r *reader) instance(res *eval.Resource, k addr.Key) *eval.Desired {
	if in, ok := res.Instances(r.t); ok {
		return in.Get(k)
	}
	return nil
}

// address writes a reference as an address that can be explained, or "" if it
// is none.
func (r *replay) address(f *frame, ref hcl.Traversal) string {
	if f.unit != nil {
		return addr.Text(ref)
	}
	if f.mod == nil {
		return ""
	}
	switch root := ref.RootName(); root {
	case "each", "count":
		if f.repeat == nil {
			return ""
		}
		return addr.Text(ref)
	case "path", "terraform", "tofu", "self":
		return addr.Text(ref)
	default:
		if f.iterator(root) != nil {
			return addr.Text(ref)
		}
	}
	path, _ := steps(ref)
	if f.mod.Addr == "" {
		return pathText(path)[1:]
	}
	return string(f.mod.Addr) + pathText(path)
}
