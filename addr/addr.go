// Package addr names things: module instances, resources, resource instances,
// provider sources and provider configurations. It parses and prints names and
// does nothing else.
//
// Every type is a small comparable value, so that it can be the key of a map;
// its String is what users type and what state and plan files hold. The one
// rule: make them with the constructors and parsers here, never from text by hand.
package addr

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Mode tells managed resources, data sources and ephemeral resources apart.
type Mode uint8

// The modes, in the order in which they are listed to users.
const (
	Managed Mode = iota
	Data
	Ephemeral
)

// String returns "managed", "data" or "ephemeral", as state and plan files have it.
func (m Mode) String() string {
	switch m {
	case Data:
		return "data"
	case Ephemeral:
		return "ephemeral"
	default:
		return "managed"
	}
}

// Prefix is what the mode puts before an address: "", "data." or "ephemeral.".
func (m Mode) Prefix() string {
	switch m {
	case Data:
		return "data."
	case Ephemeral:
		return "ephemeral."
	default:
		return ""
	}
}

// A Resource is the name of a resource block within its module.
type Resource struct {
	Mode Mode
	Type string
	Name string
}

func (r Resource) String() string { return r.Mode.Prefix() + r.Type + "." + r.Name }

// Compare orders resources by mode, type and name.
func (r Resource) Compare(o Resource) int {
	return cmp.Or(cmp.Compare(r.Mode, o.Mode), cmp.Compare(r.Type, o.Type), cmp.Compare(r.Name, o.Name))
}

// KeyKind tells the three kinds of instance keys apart.
type KeyKind uint8

// The kinds, in sort order.
const (
	NoKey KeyKind = iota
	IntKey
	StringKey
)

// A Key tells the instances of one block apart. The zero Key is that of a
// block without count and for_each.
type Key struct {
	Kind KeyKind
	Int  int
	Str  string
}

// Int makes the key of an instance made by count.
func Int(n int) Key { return Key{Kind: IntKey, Int: n} }

// Str makes the key of an instance made by for_each.
func Str(s string) Key { return Key{Kind: StringKey, Str: s} }

// String returns "", "[0]" or `["a"]`; quotes, `${` and `%{` are escaped as in HCL.
func (k Key) String() string {
	switch k.Kind {
	case IntKey:
		return "[" + strconv.Itoa(k.Int) + "]"
	case StringKey:
		return "[" + Quote(k.Str) + "]"
	default:
		return ""
	}
}

// Value is the key as a value, or cty.NilVal for the zero Key.
func (k Key) Value() cty.Value {
	switch k.Kind {
	case IntKey:
		return cty.NumberIntVal(int64(k.Int))
	case StringKey:
		return cty.StringVal(k.Str)
	default:
		return cty.NilVal
	}
}

// Compare orders keys: none, numbers, strings.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Int, o.Int), cmp.Compare(k.Str, o.Str))
}

// Quote writes a string as an HCL template literal: quotes, backslashes and
// control characters escaped, `${` and `%{` doubled.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '$', '%':
			b.WriteRune(r)
			if strings.HasPrefix(s[i+1:], "{") {
				b.WriteRune(r)
			}
		default:
			if r < 0x20 || r == 0x7f {
				b.WriteString(`\u` + hex4(r))
			} else {
				b.WriteRune(r)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hex4(r rune) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", 4-len(s)) + s
}

// A Module is the path of module calls from the root, without instance keys:
// "" for the root, else "module.a.module.b".
type Module string

// Child returns the path of a call in this module.
func (m Module) Child(name string) Module { return Module(join(string(m), "module."+name)) }

// Calls returns the names of the calls from the root.
func (m Module) Calls() []string {
	if m == "" {
		return nil
	}
	parts := strings.Split(string(m), ".")
	out := make([]string, 0, len(parts)/2)
	for i := 1; i < len(parts); i += 2 {
		out = append(out, parts[i])
	}
	return out
}

// Key is the path as modules.json has it: "a.b".
func (m Module) Key() string { return strings.Join(m.Calls(), ".") }

// Resource names a resource block in this module.
func (m Module) Resource(r Resource) ConfigResource { return ConfigResource{m, r} }

// A ModuleInstance is the path of module instances from the root: "" for the
// root, else `module.a[0].module.b["k"]`. Its text is canonical.
type ModuleInstance string

// Child returns the instance of a call in this module instance.
func (m ModuleInstance) Child(name string, key Key) ModuleInstance {
	return ModuleInstance(join(string(m), "module."+name+key.String()))
}

// A Step is one call of a module instance's path.
type Step struct {
	Name string
	Key  Key
}

// Steps returns the calls of the path from the root.
func (m ModuleInstance) Steps() []Step {
	var out []Step
	for rest := string(m); rest != ""; {
		var step Step
		step, rest = cutStep(rest)
		out = append(out, step)
	}
	return out
}

// cutStep takes the first step off the text of a module's address.
func cutStep(rest string) (Step, string) {
	rest = strings.TrimPrefix(rest, "module.")
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		return Step{Name: rest}, ""
	}
	step := Step{Name: rest[:end]}
	rest = rest[end:]
	if rest[0] == '[' {
		step.Key, rest = cutKey(rest)
	}
	return step, strings.TrimPrefix(rest, ".")
}

// ModuleFromSteps is the inverse of Steps.
func ModuleFromSteps(steps []Step) ModuleInstance {
	var m ModuleInstance
	for _, s := range steps {
		m = m.Child(s.Name, s.Key)
	}
	return m
}

// Static is the path without instance keys.
func (m ModuleInstance) Static() Module {
	if !strings.Contains(string(m), "[") {
		return Module(m)
	}
	var out Module
	for _, s := range m.Steps() {
		out = out.Child(s.Name)
	}
	return out
}

// Parent returns the calling module instance and the last step; ok is false at the root.
func (m ModuleInstance) Parent() (parent ModuleInstance, last Step, ok bool) {
	steps := m.Steps()
	if len(steps) == 0 {
		return "", Step{}, false
	}
	last = steps[len(steps)-1]
	text := "module." + last.Name + last.Key.String()
	return ModuleInstance(strings.TrimSuffix(strings.TrimSuffix(string(m), text), ".")), last, true
}

// Contains reports whether o is m or lies below it.
func (m ModuleInstance) Contains(o ModuleInstance) bool {
	if m == "" || m == o {
		return true
	}
	rest, ok := strings.CutPrefix(string(o), string(m))
	return ok && rest[0] == '.'
}

// Compare orders module instances step by step: the parent before the child,
// calls by name, then by key.
func (m ModuleInstance) Compare(o ModuleInstance) int {
	if m == o {
		return 0
	}
	a, b := string(m), string(o)
	for a != "" && b != "" {
		var x, y Step
		x, a = cutStep(a)
		y, b = cutStep(b)
		if c := cmp.Or(cmp.Compare(x.Name, y.Name), x.Key.Compare(y.Key)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b)) // at most one has steps left
}

// A ConfigResource is a resource block in a module, whatever its instances.
type ConfigResource struct {
	Module   Module
	Resource Resource
}

func (r ConfigResource) String() string { return join(string(r.Module), r.Resource.String()) }

// An AbsResource is a resource in one module instance: all its instances.
type AbsResource struct {
	Module   ModuleInstance
	Resource Resource
}

func (r AbsResource) String() string { return join(string(r.Module), r.Resource.String()) }

// Instance names one of its instances.
func (r AbsResource) Instance(k Key) Instance { return Instance{r.Module, r.Resource, k} }

// Config is the block that it comes from.
func (r AbsResource) Config() ConfigResource {
	return ConfigResource{r.Module.Static(), r.Resource}
}

// Compare orders by module, then resource.
func (r AbsResource) Compare(o AbsResource) int {
	return cmp.Or(r.Module.Compare(o.Module), r.Resource.Compare(o.Resource))
}

// An Instance is one resource instance.
type Instance struct {
	Module   ModuleInstance
	Resource Resource
	Key      Key
}

func (i Instance) String() string {
	return join(string(i.Module), i.Resource.String()+i.Key.String())
}

// Abs is the resource that it is an instance of.
func (i Instance) Abs() AbsResource { return AbsResource{i.Module, i.Resource} }

// Config is the block that it comes from.
func (i Instance) Config() ConfigResource { return i.Abs().Config() }

// Compare orders by module, resource and key.
func (i Instance) Compare(o Instance) int {
	return cmp.Or(i.Module.Compare(o.Module), i.Resource.Compare(o.Resource), i.Key.Compare(o.Key))
}

// DeposedKey names an object that was replaced but not destroyed yet: eight
// hexadecimal digits, or "" for the current object.
type DeposedKey string

// An Object is the current or a deposed object of a resource instance.
type Object struct {
	Instance Instance
	Deposed  DeposedKey
}

// String is the instance's address, with " (deposed object 1a2b3c4d)" where it is deposed.
func (o Object) String() string {
	if o.Deposed == "" {
		return o.Instance.String()
	}
	return o.Instance.String() + " (deposed object " + string(o.Deposed) + ")"
}

func join(module, rest string) string {
	if module == "" {
		return rest
	}
	return module + "." + rest
}
