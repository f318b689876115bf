package planjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// State writes a state. nil means that there is no state.
func State(s *state.State, schemas Schemas, version string) (Document, error) {
	w := new(writer)
	err := writeState(w, s, schemas, version, nil, true)
	return w.document(), err
}

// writeState writes a state. before contains the values of objects that a provider upgraded, which
// replace the stored ones. checks includes the results of its checks.
func writeState(w *writer, s *state.State, schemas Schemas, version string, before map[addr.Object]cty.Value, checks bool) error {
	w.begin('{')
	w.name("format_version")
	w.str(StateVersion)
	if s.Empty() {
		w.end('}')
		return nil
	}
	w.name("terraform_version")
	w.str(version)
	w.name("values")
	w.begin('{')
	if err := writeOutputs(w, s); err != nil {
		return err
	}
	w.name("root_module")
	sw := &stateWriter{writer: w, schemas: schemas, before: before}
	writeModules(w, s.List(), func(o state.Listed) addr.ModuleInstance { return o.Addr.Instance.Module }, sw.object)
	w.end('}')
	if checks {
		writeChecks(w, s.Checks)
	}
	w.end('}')
	return sw.err
}

func writeOutputs(w *writer, s *state.State) error {
	if len(s.Outputs) == 0 {
		return nil
	}
	names := make([]string, 0, len(s.Outputs))
	for name := range s.Outputs {
		names = append(names, name)
	}
	slices.Sort(names)
	w.name("outputs")
	w.begin('{')
	for _, name := range names {
		o := s.Outputs[name]
		ty, err := typeJSON(o.Value.Type())
		if err != nil {
			return err
		}
		w.name(name)
		w.begin('{')
		w.name("sensitive")
		w.bool(o.Sensitive)
		w.field("deprecated", o.Deprecated)
		w.name("value")
		w.value(o.Value)
		w.name("type")
		w.raw(ty)
		w.end('}')
	}
	w.end('}')
	return nil
}

type stateWriter struct {
	*writer
	schemas Schemas
	before  map[addr.Object]cty.Value // see writeState
	err     error
}

func (w *stateWriter) object(o state.Listed) {
	a := o.Addr.Instance
	var s *schema.Resource
	if w.schemas != nil {
		s = w.schemas.Resource(o.Provider.Provider, a.Resource.Mode, a.Resource.Type)
	}
	w.begin('{')
	w.names(a, false, "")
	w.name("provider_name")
	w.str(o.Provider.Provider.String())
	w.name("schema_version")
	w.int(o.Object.SchemaVersion)
	w.values(o, s)
	if len(o.Object.Dependencies) > 0 {
		deps := make([]string, len(o.Object.Dependencies))
		for i, d := range o.Object.Dependencies {
			deps[i] = d.String()
		}
		slices.Sort(deps)
		w.strs("depends_on", deps)
	}
	if o.Object.Tainted {
		w.name("tainted")
		w.bool(true)
	}
	w.field("deposed_key", string(o.Addr.Deposed))
	if len(o.Object.Identity) > 0 && json.Valid(o.Object.Identity) {
		w.name("identity")
		w.raw(string(o.Object.Identity))
		w.name("identity_schema_version")
		w.int(o.Object.IdentityVersion)
	}
	w.end('}')
}

// values writes the attributes of an object. s is nil if the schema is not known.
func (w *stateWriter) values(o state.Listed, s *schema.Resource) {
	var block *schema.Block
	if s != nil {
		block = s.Block
	}
	v, ok := w.before[o.Addr]
	var err error
	if !ok {
		v, err = Decode(o.Object, s)
	}
	if err != nil {
		if w.err == nil {
			w.err = fmt.Errorf("the stored attributes of %s do not fit the schema of its provider: %w", o.Addr, err)
		}
		return
	}
	w.name("values")
	w.value(v)
	w.name("sensitive_values")
	w.objectTree(v, sensitive(o.Object.Sensitive, v, block), isMarked, "{}")
}

// Decode decodes the attributes of an object. Without a schema, types are inferred from the
// JSON.
func Decode(o *state.Object, s *schema.Resource) (cty.Value, error) {
	if s != nil {
		return o.Decode(s.Block.ImpliedType())
	}
	if o.JSON == nil {
		return cty.NilVal, errors.New("they are stored in the form of an older version, and there is no schema to read them by")
	}
	ty, err := ctyjson.ImpliedType(o.JSON)
	if err != nil {
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(o.JSON, ty)
}

// writeChecks writes check results, if there are any.
func writeChecks(w *writer, checks []state.CheckResult) {
	if len(checks) == 0 {
		return
	}
	checks = slices.Clone(checks)
	slices.SortStableFunc(checks, func(a, b state.CheckResult) int { return strings.Compare(a.Addr, b.Addr) })
	w.name("checks")
	w.begin('[')
	for _, c := range checks {
		w.begin('{')
		w.name("address")
		w.checkAddress(c)
		w.name("status")
		w.str(string(c.Status))
		if len(c.Objects) > 0 {
			w.name("instances")
			w.begin('[')
			for _, o := range c.Objects {
				w.checkObject(c.Kind, o)
			}
			w.end(']')
		}
		w.end('}')
	}
	w.end(']')
}

var checkKinds = map[state.CheckKind]string{
	state.CheckResource: "resource", state.CheckOutput: "output_value", state.CheckBlock: "check", state.CheckVariable: "var",
}

func (w *writer) checkAddress(c state.CheckResult) {
	w.begin('{')
	w.name("kind")
	w.str(checkKinds[c.Kind])
	if c.Kind == state.CheckResource {
		if r, err := addr.ParseConfigResource(c.Addr); err == nil {
			w.name("mode")
			w.str(r.Resource.Mode.String())
			w.field("module", string(r.Module))
			w.name("name")
			w.str(r.Resource.Name)
			w.name("to_display")
			w.str(c.Addr)
			w.name("type")
			w.str(r.Resource.Type)
			w.end('}')
			return
		}
	}
	mod, name := splitCheck(c.Addr)
	w.field("module", mod)
	w.name("name")
	w.str(name)
	w.name("to_display")
	w.str(c.Addr)
	w.end('}')
}

// splitCheck splits the address of an output, check or variable.
func splitCheck(a string) (module, name string) {
	i := strings.LastIndexByte(a, '.')
	if i < 0 {
		return "", a
	}
	name, a = a[i+1:], a[:i]
	if i = strings.LastIndexByte(a, '.'); i >= 0 {
		module = a[:i]
	}
	return module, name
}

func (w *writer) checkObject(k state.CheckKind, o state.CheckObject) {
	w.begin('{')
	w.name("address")
	w.begin('{')
	if k == state.CheckResource {
		if a, err := addr.ParseInstance(o.Addr); err == nil {
			switch a.Key.Kind {
			case addr.IntKey:
				w.name("instance_key")
				w.int(int64(a.Key.Int))
			case addr.StringKey:
				w.name("instance_key")
				w.str(a.Key.Str)
			}
			w.field("module", string(a.Module))
		}
	} else {
		mod, _ := splitCheck(o.Addr)
		w.field("module", mod)
	}
	w.name("to_display")
	w.str(o.Addr)
	w.end('}')
	w.name("status")
	w.str(string(o.Status))
	if len(o.Failures) > 0 {
		w.name("problems")
		w.begin('[')
		for _, f := range o.Failures {
			w.begin('{')
			w.name("message")
			w.str(f)
			w.end('}')
		}
		w.end(']')
	}
	w.end('}')
}
