package view

import (
	"io"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
)

// State writes a state for people. It hides sensitive values unless reveal is set. A nil state
// counts as empty.
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
	for _, o := range s.List() {
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

func (v *planView) stateObject(o state.Listed) {
	v.str("# ", o.Addr.Instance.String(), ":")
	if o.Object.Tainted {
		v.str(" (tainted)")
	}
	if o.Object.Replace != "" {
		v.str(" (to be replaced)")
	}
	if o.Addr.Deposed != "" {
		v.str(" (deposed object ", string(o.Addr.Deposed), ")")
	}
	r := o.Addr.Instance.Resource
	v.str("\n", blockName(r.Mode), " ", quoted(r.Type), " ", quoted(r.Name), " ")
	var s *schema.Resource
	if v.schemas != nil {
		s = v.schemas.Resource(o.Provider.Provider, r.Mode, r.Type)
	}
	val, err := planjson.Decode(o.Object, s)
	if err != nil {
		v.str("{\n    # The stored attributes cannot be shown: ", diag.Reason(err), "\n}\n")
		return
	}
	p := pair{before: val, after: val, beforeS: value.NewPathSet(o.Object.Sensitive), afterS: value.NewPathSet(o.Object.Sensitive)}
	n := v.resource(p, s, nil)
	v.node(n, 0, flags{all: true, plain: true})
	v.str("\n")
}

// stateOutputs writes outputs in the form of a plan.
func (v *planView) stateOutputs(s *state.State) {
	for _, name := range sortedNames(s.Outputs) {
		o := s.Outputs[name]
		p := pair{before: o.Value, after: o.Value}
		p.beforeS, p.afterS = value.Whole(o.Sensitive), value.Whole(o.Sensitive)
		v.str(name, " = ")
		v.node(v.d.typed(p, o.Value.Type()), 0, flags{all: true, plain: true})
		v.str("\n")
	}
}

// Outputs writes outputs as expressions, each after its name.
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
