package view

import (
	"io"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/zclconf/go-cty/cty"
)

// State writes what a state holds for people. Sensitive values are hidden
// unless reveal is set. A nil State is an empty one.
func State(w io.Writer, style Style, s *state.State, schemas Schemas, reveal bool) error {
	v := &planView{printer: newPrinter(w, style), schemas: schemas, d: differ{reveal: reveal}}
	switch {
	case s == nil:
		v.str("No state.\n")
		return v.Flush()
	case s.Empty():
		v.str("The state file is empty. No resources are represented.\n")
		return v.Flush()
	}
	first := true
	for _, o := range stateObjects(s) {
		if !first {
			v.str("\n")
		}
		first = false
		v.stateObject(o)
	}
	if len(s.Outputs) > 0 {
		if !first {
			v.str("\n")
		}
		v.str("\nOutputs:\n\n")
		v.stateOutputs(s)
	}
	return v.Flush()
}

// Object writes one object of a state.
func Object(w io.Writer, style Style, a addr.Object, o *state.Object, p addr.ProviderConfig, schemas Schemas, reveal bool) error {
	v := &planView{printer: newPrinter(w, style), schemas: schemas, d: differ{reveal: reveal}}
	v.stateObject(stateObject{a, o, p})
	return v.Flush()
}

type stateObject struct {
	addr     addr.Object
	object   *state.Object
	provider addr.ProviderConfig
}

// stateObjects lists the objects: modules in order, in each data sources first.
func stateObjects(s *state.State) []stateObject {
	var out []stateObject
	for _, r := range s.Sorted() {
		for _, k := range r.Keys() {
			i := r.Instances[k]
			a := addr.Object{Instance: r.Addr.Instance(k)}
			if i.Current != nil {
				out = append(out, stateObject{a, i.Current, r.Config(i)})
			}
			for _, d := range i.DeposedKeys() {
				a.Deposed = d
				out = append(out, stateObject{a, i.Deposed[d], r.Config(i)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b stateObject) int {
		x, y := a.addr.Instance, b.addr.Instance
		if x.Module != y.Module {
			return x.Module.Compare(y.Module)
		}
		return int(y.Resource.Mode) - int(x.Resource.Mode)
	})
	return out
}

func (v *planView) stateObject(o stateObject) {
	v.str("# ", o.addr.Instance.String(), ":")
	if o.object.Tainted {
		v.str(" (tainted)")
	}
	if o.addr.Deposed != "" {
		v.str(" (deposed object ", string(o.addr.Deposed), ")")
	}
	r := o.addr.Instance.Resource
	v.str("\n", blockName(r.Mode), " ", quoted(r.Type), " ", quoted(r.Name), " ")
	var s *schema.Resource
	if v.schemas != nil {
		s = v.schemas.Resource(o.provider.Provider, r.Mode, r.Type)
	}
	val, err := planjson.Decode(o.object, s)
	if err != nil {
		v.str("{\n    # The stored attributes cannot be shown: ", err.Error(), "\n}\n")
		return
	}
	p := pair{before: val, after: val, beforeS: newPaths(o.object.Sensitive), afterS: newPaths(o.object.Sensitive)}
	n := v.resource(p, s, same, nil)
	v.node(n, 0, flags{all: true, plain: true})
	v.str("\n")
}

// stateOutputs writes outputs in the style of a plan.
func (v *planView) stateOutputs(s *state.State) {
	for _, name := range sortedNames(s.Outputs) {
		o := s.Outputs[name]
		p := pair{before: o.Value, after: o.Value}
		p.beforeS, p.afterS = &paths{here: o.Sensitive}, &paths{here: o.Sensitive}
		v.str(name, " = ")
		v.node(v.d.typed(p, cty.DynamicPseudoType), 0, flags{all: true, plain: true})
		v.str("\n")
	}
}

// Outputs writes outputs as expressions, each behind its name.
func Outputs(w io.Writer, outputs map[string]*state.Output, reveal bool) error {
	var b strings.Builder
	for _, name := range sortedNames(outputs) {
		o := outputs[name]
		b.WriteString(name + " = ")
		if o.Sensitive && !reveal {
			b.WriteString("<sensitive>")
		} else {
			writeValue(&b, o.Value, 0)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
