// Package addr defines addresses: of module instances, resources, resource instances, provider
// sources and provider configurations. It parses and formats them.
//
// Every type is a small comparable value, so that it can be the key of a map. String returns
// the form that users type and that state and plan files contain. The one rule: create
// addresses with the constructors and parsers of this package, never from concatenated text.
package addr

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Mode distinguishes managed resources, data sources, ephemeral resources and list resources.
type Mode uint8

// The modes, in the order in which they are listed.
const (
	Managed Mode = iota
	Data
	Ephemeral
	List // queries of existing objects; see config.Queries
)

// String returns "managed", "data" or "ephemeral", as in state and plan files, or "list".
func (m Mode) String() string {
	switch m {
	case Data:
		return "data"
	case Ephemeral:
		return "ephemeral"
	case List:
		return "list"
	default:
		return "managed"
	}
}

// Prefix returns the prefix of addresses in the mode: "", "data.", "ephemeral." or "list.".
func (m Mode) Prefix() string {
	switch m {
	case Data:
		return "data."
	case Ephemeral:
		return "ephemeral."
	case List:
		return "list."
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

// String returns the address within the module, such as "aws_instance.web" or "data.aws_ami.os".
func (r Resource) String() string { return r.Mode.Prefix() + r.Type + "." + r.Name }

// Compare compares resources by mode, type and name.
func (r Resource) Compare(o Resource) int {
	return cmp.Or(cmp.Compare(r.Mode, o.Mode), cmp.Compare(r.Type, o.Type), cmp.Compare(r.Name, o.Name))
}

// KeyKind is the kind of an instance key.
type KeyKind uint8

// The kinds, in sort order.
const (
	NoKey KeyKind = iota
	IntKey
	StringKey
)

// A Key identifies an instance of a block. The zero Key is that of a block without count and
// for_each.
type Key struct {
	Kind KeyKind
	Int  int
	Str  string
}

// Int returns the key of an instance of a block with count.
func Int(n int) Key { return Key{Kind: IntKey, Int: n} }

// Str returns the key of an instance of a block with for_each.
func Str(s string) Key { return Key{Kind: StringKey, Str: s} }

// String returns "", "[0]" or `["a"]`. Quotes, `${` and `%{` are escaped as in HCL.
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

// Value returns the key as a value, or cty.NilVal for the zero Key.
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

// Compare compares keys: no key first, then numbers, then strings.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Int, o.Int), cmp.Compare(k.Str, o.Str))
}

// Quote returns a string as an HCL template literal: quotes, backslashes and control characters
// are escaped, `${` and `%{` are doubled.
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

// A Module is the path of module calls from the root, without instance keys: "" for the root,
// otherwise "module.a.module.b".
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

// Key returns the path in the form of modules.json: "a.b".
func (m Module) Key() string { return strings.Join(m.Calls(), ".") }

// Resource returns the address of a resource block in this module.
func (m Module) Resource(r Resource) ConfigResource { return ConfigResource{m, r} }

// A ModuleInstance is the path of module instances from the root: "" for the root, otherwise
// `module.a[0].module.b["k"]`. Its text is canonical.
type ModuleInstance string

// Child returns the instance of a call in this module instance.
func (m ModuleInstance) Child(name string, key Key) ModuleInstance {
	return ModuleInstance(join(string(m), "module."+name+key.String()))
}

// Within returns the address of an instance that is a relative to m, a module instance in m.
func (m ModuleInstance) Within(a ModuleInstance) ModuleInstance {
	switch {
	case m == "":
		return a
	case a == "":
		return m
	}
	return ModuleInstance(join(string(m), string(a)))
}

// A Step is one call in the path of a module instance.
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

// cutStep removes the first step from the text of a module's address.
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

// ModuleFromSteps returns the module instance with the given steps.
func ModuleFromSteps(steps []Step) ModuleInstance {
	var m ModuleInstance
	for _, s := range steps {
		m = m.Child(s.Name, s.Key)
	}
	return m
}

// Static returns the path without instance keys.
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

// Contains reports whether o is m or below m.
func (m ModuleInstance) Contains(o ModuleInstance) bool {
	if m == "" || m == o {
		return true
	}
	rest, ok := strings.CutPrefix(string(o), string(m))
	return ok && rest[0] == '.'
}

// Compare compares module instances step by step: a parent comes before its child; calls are
// compared by name, then by key.
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
	return cmp.Compare(len(a), len(b)) // at most one has remaining steps
}

// A ConfigResource is a resource block in a module, without instances.
type ConfigResource struct {
	Module   Module
	Resource Resource
}

// String returns the address without instance keys, such as "module.net.aws_instance.web".
func (r ConfigResource) String() string { return join(string(r.Module), r.Resource.String()) }

// An AbsResource is a resource in one module instance, with all its instances.
type AbsResource struct {
	Module   ModuleInstance
	Resource Resource
}

// String returns the address, such as `module.net["a"].aws_instance.web`.
func (r AbsResource) String() string { return join(string(r.Module), r.Resource.String()) }

// Instance returns the address of one instance.
func (r AbsResource) Instance(k Key) Instance { return Instance{r.Module, r.Resource, k} }

// Config returns the address of the resource block.
func (r AbsResource) Config() ConfigResource {
	return ConfigResource{r.Module.Static(), r.Resource}
}

// Compare compares by module, then resource.
func (r AbsResource) Compare(o AbsResource) int {
	return cmp.Or(r.Module.Compare(o.Module), r.Resource.Compare(o.Resource))
}

// An Instance is one resource instance.
type Instance struct {
	Module   ModuleInstance
	Resource Resource
	Key      Key
}

// String returns the address, such as `module.net["a"].aws_instance.web[0]`.
func (i Instance) String() string {
	return join(string(i.Module), i.Resource.String()+i.Key.String())
}

// Abs returns the resource of the instance.
func (i Instance) Abs() AbsResource { return AbsResource{i.Module, i.Resource} }

// Config returns the address of the resource block.
func (i Instance) Config() ConfigResource { return i.Abs().Config() }

// Compare compares by module, resource and key.
func (i Instance) Compare(o Instance) int {
	return cmp.Or(i.Module.Compare(o.Module), i.Resource.Compare(o.Resource), i.Key.Compare(o.Key))
}

// DeposedKey identifies an object that was replaced but not destroyed yet: eight hexadecimal
// digits, or "" for the current object.
type DeposedKey string

// An Object is the current or a deposed object of a resource instance.
type Object struct {
	Instance Instance
	Deposed  DeposedKey
}

// String returns the instance's address, followed by " (deposed object 1a2b3c4d)" for a deposed
// object.
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
