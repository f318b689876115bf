package statefile

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/state"
)

// flushAt is the number of bytes that are buffered before they are written.
const flushAt = 64 << 10

// Write writes a state as version 4. With indent the output has the form of local state files:
// indented by two spaces, with an empty line at the end. Otherwise it has the form for all
// other stores: compact, with a line break at the end.
//
// Write returns an error of w, or an error that names the value that cannot be stored.
func Write(w io.Writer, s *state.State, indent bool) error {
	guess := (1 + len(s.Resources)) << 10
	e := &encoder{w: w, indent: indent, b: make([]byte, 0, min(guess, flushAt+flushAt/4))}
	return e.state(s)
}

// An encoder produces compact text; flush indents it if required.
type encoder struct {
	w      io.Writer
	indent bool
	level  int
	b      []byte
	out    []byte

	blocks    map[addr.ConfigResource][]byte // addresses as JSON strings
	providers map[addr.ProviderConfig][]byte
}

func (e *encoder) flush() error {
	text := e.b
	if e.indent {
		e.out, e.level = rawjson.AppendIndent(e.out[:0], e.b, e.level)
		text = e.out
	}
	_, err := e.w.Write(text)
	e.b = e.b[:0]
	return err
}

func (e *encoder) state(s *state.State) error {
	e.b = append(e.b, `{"version":4,"terraform_version":"`+Version+`","serial":`...)
	e.b = strconv.AppendUint(e.b, s.Serial, 10)
	e.b = append(e.b, `,"lineage":`...)
	e.b = rawjson.AppendString(e.b, s.Lineage)
	e.b = append(e.b, `,"outputs":{`...)
	if err := e.outputs(s.Outputs); err != nil {
		return err
	}
	e.b = append(e.b, `},"resources":[`...)
	for i, r := range inFileOrder(s.Resources) {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		if err := e.resource(r); err != nil {
			return fmt.Errorf("%s: %w", r.Addr, err)
		}
	}
	e.b = append(e.b, `],"check_results":`...)
	e.checks(s.Checks)
	e.b = append(e.b, '}')
	if err := e.flush(); err != nil {
		return err
	}
	end := "\n"
	if e.indent {
		end = "\n\n"
	}
	_, err := io.WriteString(e.w, end)
	return err
}

func (e *encoder) outputs(os map[string]*state.Output) error {
	for i, name := range slices.Sorted(maps.Keys(os)) {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		o := os[name]
		raw, err := state.Encode(o.Value, o.Value.Type())
		if err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
		ty, err := state.EncodeType(o.Value.Type())
		if err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
		e.b = append(rawjson.AppendString(e.b, name), `:{"value":`...)
		e.b = append(e.b, raw...)
		e.b = append(append(e.b, `,"type":`...), ty...)
		if o.Sensitive {
			e.b = append(e.b, `,"sensitive":true`...)
		}
		if o.Deprecated != "" {
			e.b = rawjson.AppendString(append(e.b, `,"deprecated":`...), o.Deprecated)
		}
		e.b = append(e.b, '}')
		if len(e.b) >= flushAt {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// inFileOrder sorts by module, mode, type and name, each compared as text.
func inFileOrder(rs map[addr.AbsResource]*state.Resource) []*state.Resource {
	return slices.SortedFunc(maps.Values(rs), func(a, b *state.Resource) int {
		return cmp.Or(
			cmp.Compare(a.Addr.Module, b.Addr.Module),
			cmp.Compare(a.Addr.Resource.Mode.String(), b.Addr.Resource.Mode.String()),
			cmp.Compare(a.Addr.Resource.Type, b.Addr.Resource.Type),
			cmp.Compare(a.Addr.Resource.Name, b.Addr.Resource.Name),
		)
	})
}

func (e *encoder) resource(r *state.Resource) error {
	keyed := false
	for _, i := range r.Instances {
		if i.ProviderKey.Kind != addr.NoKey {
			keyed = true
			break
		}
	}
	e.header(r.Addr)
	if !keyed {
		e.b = append(e.b, `,"provider":`...)
		e.b = append(e.b, e.provider(r.Provider)...)
	}
	e.b = append(e.b, `,"instances":[`...)
	first := true
	add := func(k addr.Key, i *state.Instance, d addr.DeposedKey, o *state.Object) error {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		var provider []byte
		if keyed {
			provider = e.provider(r.Config(i))
		}
		if err := e.instance(k, d, provider, o); err != nil {
			return err
		}
		if len(e.b) >= flushAt {
			return e.flush()
		}
		return nil
	}
	for _, k := range r.Keys() {
		i := r.Instances[k]
		if i.Current != nil {
			if err := add(k, i, "", i.Current); err != nil {
				return err
			}
		}
		for _, d := range i.DeposedKeys() {
			if err := add(k, i, d, i.Deposed[d]); err != nil {
				return err
			}
		}
	}
	e.b = append(e.b, `]}`...)
	return nil
}

// header writes the beginning of a resource object, with the address of the resource.
func (e *encoder) header(a addr.AbsResource) {
	e.b = append(e.b, '{')
	if a.Module != "" {
		e.b = rawjson.AppendString(append(e.b, `"module":`...), string(a.Module))
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, `"mode":"`...)
	e.b = append(e.b, a.Resource.Mode.String()...)
	e.b = rawjson.AppendString(append(e.b, `","type":`...), a.Resource.Type)
	e.b = rawjson.AppendString(append(e.b, `,"name":`...), a.Resource.Name)
}

func (e *encoder) provider(p addr.ProviderConfig) []byte {
	text, ok := e.providers[p]
	if !ok {
		text = rawjson.AppendString(nil, p.String())
		if e.providers == nil {
			e.providers = make(map[addr.ProviderConfig][]byte)
		}
		e.providers[p] = text
	}
	return text
}

func (e *encoder) block(r addr.ConfigResource) []byte {
	text, ok := e.blocks[r]
	if !ok {
		text = rawjson.AppendString(nil, r.String())
		if e.blocks == nil {
			e.blocks = make(map[addr.ConfigResource][]byte)
		}
		e.blocks[r] = text
	}
	return text
}

// instance writes one object. provider is a JSON string; nil omits the property.
func (e *encoder) instance(k addr.Key, d addr.DeposedKey, provider []byte, o *state.Object) error {
	b := append(e.b, '{')
	b = appendKey(b, k)
	if o.Tainted {
		b = append(b, `"status":"tainted",`...)
	}
	if o.Replace != "" {
		b = append(rawjson.AppendString(append(b, `"terrace_replace":`...), o.Replace), ',')
	}
	if d != "" {
		b = append(rawjson.AppendString(append(b, `"deposed":`...), string(d)), ',')
	}
	if provider != nil {
		b = append(append(append(b, `"provider":`...), provider...), ',')
	}
	b = strconv.AppendInt(append(b, `"schema_version":`...), o.SchemaVersion, 10)
	switch {
	case o.JSON != nil:
		b = append(append(b, `,"attributes":`...), o.JSON...)
	case o.Flat != nil:
		b = appendFlat(append(b, `,"attributes_flat":`...), o.Flat)
	default:
		b = append(b, `,"attributes":{}`...)
	}
	b = append(b, `,"sensitive_attributes":`...)
	b, err := appendPaths(b, o.Sensitive)
	if err != nil {
		return err
	}
	if len(o.Private) > 0 {
		b = base64.StdEncoding.AppendEncode(append(b, `,"private":"`...), o.Private)
		b = append(b, '"')
	}
	for i, dep := range o.Dependencies {
		if i == 0 {
			b = append(b, `,"dependencies":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, e.block(dep)...)
	}
	if len(o.Dependencies) > 0 {
		b = append(b, ']')
	}
	if o.CreateBeforeDestroy {
		b = append(b, `,"create_before_destroy":true`...)
	}
	if o.SkipDestroy {
		b = append(b, `,"skip_destroy":true`...)
	}
	if o.Identity != nil {
		b = append(append(b, `,"identity":`...), o.Identity...)
		b = strconv.AppendInt(append(b, `,"identity_schema_version":`...), o.IdentityVersion, 10)
	}
	e.b = append(b, '}')
	return nil
}

func appendKey(b []byte, k addr.Key) []byte {
	switch k.Kind {
	case addr.IntKey:
		return append(strconv.AppendInt(append(b, `"index_key":`...), int64(k.Int), 10), ',')
	case addr.StringKey:
		return append(rawjson.AppendString(append(b, `"index_key":`...), k.Str), ',')
	}
	return b
}

func appendFlat(b []byte, flat map[string]string) []byte {
	b = append(b, '{')
	for i, k := range slices.Sorted(maps.Keys(flat)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = rawjson.AppendString(append(rawjson.AppendString(b, k), ':'), flat[k])
	}
	return append(b, '}')
}

func (e *encoder) checks(cs []state.CheckResult) {
	if len(cs) == 0 {
		e.b = append(e.b, "null"...)
		return
	}
	for i, c := range cs {
		e.b = append(e.b, "[,"[min(i, 1)])
		e.b = rawjson.AppendString(append(e.b, `{"object_kind":`...), string(c.Kind))
		e.b = rawjson.AppendString(append(e.b, `,"config_addr":`...), c.Addr)
		e.b = rawjson.AppendString(append(e.b, `,"status":`...), string(c.Status))
		e.b = append(e.b, `,"objects":`...)
		if len(c.Objects) == 0 {
			e.b = append(e.b, "null"...)
		}
		for j, o := range c.Objects {
			e.b = append(e.b, "[,"[min(j, 1)])
			e.b = rawjson.AppendString(append(e.b, `{"object_addr":`...), o.Addr)
			e.b = rawjson.AppendString(append(e.b, `,"status":`...), string(o.Status))
			for n, m := range o.Failures {
				if n == 0 {
					e.b = append(e.b, `,"failure_messages":`...)
				}
				e.b = rawjson.AppendString(append(e.b, "[,"[min(n, 1)]), m)
			}
			if len(o.Failures) > 0 {
				e.b = append(e.b, ']')
			}
			e.b = append(e.b, '}')
		}
		if len(c.Objects) > 0 {
			e.b = append(e.b, ']')
		}
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, ']')
}
