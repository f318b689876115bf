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

// A reader evaluates expressions in their frames, and finds instances and schemas. It does not decide
// what is shown.
type reader struct {
	t         *demand.Task
	e         *Explainer
	unchecked []addr.Provider // see Explanation.Unchecked
	ends      *Ends           // not nil if only the place of the last step is used: texts of lines are then omitted
}

// A frame is the context of an expression: the definitions to which its references refer.
type frame struct {
	mod   *eval.Module // nil in a variable file and in a unit file
	scope lang.Scope   // nil in a variable file and in a unit file

	unit  Scope                // scope of an expression in a unit file; nil for other files
	names map[string]cty.Value // values of iterators in a unit file

	// For a repeated block: the argument that repeats it, and the key of the instance. The zero key
	// means all instances.
	repeat  *config.Setting
	forEach bool
	key     addr.Key

	self *eval.Resource // resource to which self refers in a provisioner or connection, or nil

	iter  *iteration // innermost dynamic block or for expression, or nil
	guard guard      // guard of the arguments of the block
}

// An iteration is one iteration of a dynamic block or for expression.
type iteration struct {
	name    string // name of a dynamic block's iterator; "" for a for expression
	keyVar  string // name of a for expression's key variable; may be ""
	valVar  string
	forEach hcl.Expression
	at      *frame // frame of for_each
	n       int    // position of the element, from 0
	key     cty.Value
	under   *iteration
}

// repeats reports whether a path begins with each.key, each.value or count.index, as fits the repetition
// of the block.
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

// inside returns the frame of one iteration. names contains the values of its iterators.
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

// path converts a reference to one of the iteration's names to the steps after the name of a dynamic
// block's iterator: key or value, and the rest.
func (it *iteration) path(ref []step) []step {
	switch name := ref[0].name(); {
	case it.name != "":
		return ref[1:]
	case name == it.valVar:
		return join([]step{nameStep("value")}, ref[1:])
	}
	return join([]step{nameStep("key")}, ref[1:])
}

// named returns the name of the key or the value of an iteration in the configuration.
func (it *iteration) named(what string) string {
	switch {
	case it.name != "":
		return it.name + "." + what
	case what == "key":
		return it.keyVar
	}
	return it.valVar
}

// iterScope adds one name of an iteration to a scope.
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

// moduleFrame returns the frame of locals, outputs and the like in a module.
func moduleFrame(m *eval.Module) *frame { return &frame{mod: m, scope: m} }

// inputFrame returns the frame of the inputs of a module instance.
func inputFrame(m *eval.Module) *frame {
	f := &frame{mod: m.Parent(), scope: m.CallScope()}
	f.repeat, f.forEach = repetition(m.CalledBy().Config().Repeat)
	if all := m.Addr.Steps(); len(all) > 0 {
		f.key = all[len(all)-1].Key
	}
	return f
}

// resourceFrame returns the frame of the arguments of a resource, for the instance with a key, or for all
// instances if none has that key.
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

// address converts a reference to an address that Explain accepts, or to "" if there is none.
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
