package unit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// # Files as objects
//
// A file can be read as an object: by an import, by an exposed include, by
// read_terragrunt_config, and by render. The members are the same, what is
// unset differs: an import has {} for collections and null for the rest, the
// others leave blocks out, as Terragrunt does.

type style uint8

const (
	importStyle style = iota
	includeStyle
	readStyle
	renderStyle
)

// configNode is a file's effective configuration as an object.
type configNode struct {
	e     *ev
	style style
	at    *source.Range
}

func (n *configNode) open(*calc) node             { return n }
func (n *configNode) where() (*ev, *source.Range) { return n.e, n.at }
func (n *configNode) listed()                     {}

// value is computed in a cell of the file, since many may ask for it.
func (n *configNode) value(c *calc) cty.Value {
	if n.style == readStyle && n.e.role != leafRole {
		r := c.cellOf(n.e, wholePart)
		return r.v
	}
	return objectOf(c, n)
}

func (n *configNode) keys(c *calc) ([]string, bool) {
	if n.e.role == stackRole {
		return (&stackConfig{n.e}).keys(c)
	}
	fields := n.fields(c)
	names := []string{"dependencies", "dependency", "download_dir", "feature", "generate", "iam_assume_role_duration",
		"iam_assume_role_session_name", "iam_role", "iam_web_identity_token", "inputs", "locals",
		"terraform_binary", "terraform_version_constraint", "terragrunt_version_constraint"}
	for _, k := range [...]string{"engine", "errors", "exclude", "prevent_destroy", "remote_state", "terraform"} {
		if n.style == importStyle || fields.members[k] != nil {
			names = append(names, k)
		}
	}
	if n.style == importStyle {
		names = append(names, "terragrunt_dir")
		if fields.members["module"] != nil {
			names = append(names, "module")
		}
	}
	slices.Sort(names)
	return names, true
}

func (n *configNode) lacks(key string) string {
	if n.style != importStyle {
		return ""
	}
	if key == "import" || key == "include" {
		return "What a file imports itself cannot be reached through it. Let that file hand it on in its locals or inputs."
	}
	return fmt.Sprintf("An imported file has no part named %q.", key)
}

func (n *configNode) child(c *calc, key string) node {
	if n.e.role == stackRole {
		return (&stackConfig{n.e}).child(c, key)
	}
	switch key {
	case "locals":
		if n.style != importStyle && !hasLocals(n.e) { // the others say null
			return valueNode{cty.NullVal(cty.DynamicPseudoType), n.e, nil}
		}
		return n.data(&locals{n.e.env()})
	case "terragrunt_dir":
		if n.style == importStyle {
			return valueNode{cty.StringVal(n.e.dir), n.e, n.at}
		}
		return nil
	case "module":
		if n.style == importStyle {
			return c.modulesNode(n.e)
		}
		return nil
	}
	fields := n.fields(c)
	raw := fields.members[key]
	spec := languageTable().unit
	if key == "inputs" {
		switch {
		case raw != nil:
			return n.data(raw)
		case n.style == importStyle:
			return valueNode{cty.EmptyObjectVal, n.e, n.at}
		}
		return valueNode{cty.NullVal(cty.DynamicPseudoType), n.e, n.at}
	}
	if a := spec.arg(key); a != nil {
		return n.scalar(a, raw)
	}
	sub := spec.block(key)
	if sub == nil || key == "import" || key == "include" || key == "catalog" {
		return nil
	}
	return n.block(c, sub, raw)
}

func hasLocals(e *ev) bool {
	b := e.f.root.first("locals")
	return b != nil && len(b.attrs) > 0
}

// fields is the effective configuration, with paths that mean the same for the
// reader as for the file.
func (n *configNode) fields(c *calc) *group {
	switch {
	case n.e.mod != nil:
		return c.leafFields()
	case n.style == importStyle:
		return rebase(c.conf(n.e), n.e.dir)
	}
	return c.conf(n.e)
}

func (n *configNode) scalar(a *argSpec, raw node) node {
	if raw != nil {
		return typed(raw, a)
	}
	switch {
	case n.style == importStyle, a.ty != cty.String:
		if a.name == "prevent_destroy" && n.style != importStyle {
			return nil
		}
		return valueNode{cty.NullVal(a.ty), n.e, n.at}
	}
	return valueNode{cty.StringVal(""), n.e, n.at}
}

func (n *configNode) block(c *calc, sub *blockSpec, raw node) node {
	switch sub.name {
	case "dependency", "generate", "feature":
		if raw == nil {
			return valueNode{cty.EmptyObjectVal, n.e, n.at}
		}
		return &mapped{raw, func(label string, b node) node { return n.shaped(b, sub, label) }}
	}
	if raw == nil {
		if n.style == importStyle || sub.name == "dependencies" {
			return valueNode{cty.NullVal(cty.DynamicPseudoType), n.e, n.at}
		}
		return nil
	}
	return n.shaped(raw, sub, "")
}

func (n *configNode) shaped(raw node, sub *blockSpec, label string) node {
	return &shape{raw: raw, spec: sub, label: label, of: n}
}

// data gives values to another file: as plain data, where Terragrunt lost the
// types, and as they are for imports.
func (n *configNode) data(in node) node {
	if n.style == importStyle || n.style == renderStyle {
		return in
	}
	return &plainNode{in}
}

// plainNode turns sets, lists and maps into what JSON would have made of them.
type plainNode struct{ n node }

func (n *plainNode) open(c *calc) node {
	o := n.n.open(c)
	if v, ok := o.(valueNode); ok {
		v.v = plain(v.v)
		return v
	}
	return &plainNode{o}
}

func (n *plainNode) value(c *calc) cty.Value       { return plain(n.n.value(c)) }
func (n *plainNode) keys(c *calc) ([]string, bool) { return n.n.keys(c) }
func (n *plainNode) where() (*ev, *source.Range)   { return n.n.where() }

func (n *plainNode) child(c *calc, key string) node {
	in := n.n.child(c, key)
	if in == nil {
		return nil
	}
	return &plainNode{in}
}

func plain(v cty.Value) cty.Value {
	if !holdsCollection(v.Type()) {
		return v
	}
	bare, marks := v.Unmark()
	if !known(bare) {
		return v
	}
	ty := bare.Type()
	switch {
	case ty.IsObjectType() || ty.IsMapType():
		m := bare.AsValueMap()
		for k, in := range m {
			m[k] = plain(in)
		}
		return cty.ObjectVal(m).WithMarks(marks)
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		var out []cty.Value
		for _, in := range bare.AsValueSlice() {
			out = append(out, plain(in))
		}
		return cty.TupleVal(out).WithMarks(marks)
	}
	return v
}

func holdsCollection(ty cty.Type) bool {
	switch {
	case ty.IsCollectionType():
		return true
	case ty.IsTupleType():
		return slices.ContainsFunc(ty.TupleElementTypes(), holdsCollection)
	case ty.IsObjectType():
		for _, a := range ty.AttributeTypes() {
			if holdsCollection(a) {
				return true
			}
		}
	}
	return false
}

// shape is a block as an object with every argument that its kind has.
type shape struct {
	raw   node
	spec  *blockSpec
	label string
	of    *configNode
}

func (n *shape) open(*calc) node             { return n }
func (n *shape) value(c *calc) cty.Value     { return objectOf(c, n) }
func (n *shape) where() (*ev, *source.Range) { return n.raw.where() }

func (n *shape) keys(c *calc) ([]string, bool) {
	var names []string
	for i := range n.spec.args {
		if a := &n.spec.args[i]; !a.hidden || n.raw.child(c, a.name) != nil {
			names = append(names, shownName(n.spec, a.name))
		}
	}
	for _, b := range n.spec.blocks {
		switch {
		case b.name == "ignore" && n.raw.child(c, b.name) == nil:
			continue
		}
		names = append(names, b.name)
	}
	if n.spec.label == oneLabel && n.spec.name != "generate" {
		names = append(names, "name")
	}
	switch n.spec.name {
	case "dependency":
		names = append(names, "inputs", "outputs")
	case "feature":
		if n.of.style == importStyle {
			names = append(names, "value")
		}
	}
	return names, true
}

// shownName is how an argument is called in rendered objects.
func shownName(spec *blockSpec, name string) string {
	if spec.name == "dependency" && name == "skip_outputs" {
		return "skip"
	}
	return name
}

func (n *shape) outputs(c *calc) node {
	if n.of.style == renderStyle {
		return valueNode{cty.NullVal(cty.DynamicPseudoType), nil, nil}
	}
	d := &depNode{scope: n.of.e, label: n.label, raw: n.raw}
	if out := d.child(c, "outputs"); out != nil {
		return out
	}
	return valueNode{cty.NullVal(cty.DynamicPseudoType), nil, nil}
}

func (n *shape) child(c *calc, key string) node {
	e, at := n.raw.where()
	switch {
	case key == "name" && n.spec.label == oneLabel && n.spec.name != "generate":
		return valueNode{cty.StringVal(n.label), e, at}
	case n.spec.name == "dependency" && key == "outputs":
		return n.outputs(c)
	case n.spec.name == "dependency" && key == "inputs":
		return valueNode{cty.NullVal(cty.DynamicPseudoType), e, at}
	case n.spec.name == "feature" && key == "value" && n.of.style == importStyle:
		return c.feature(n.label, n.raw)
	case n.spec.name == "dependency" && key == "skip":
		key = "skip_outputs"
	}
	if a := n.spec.arg(key); a != nil {
		if in := n.raw.child(c, key); in != nil {
			return n.path(typed(in, a), in, a)
		}
		if a.required && n.of.style == importStyle {
			return c.absent(n, a)
		}
		if a.def != cty.NilVal {
			return valueNode{a.def, e, at}
		}
		return valueNode{cty.NullVal(a.ty), e, at}
	}
	sub := n.spec.block(key)
	if sub == nil {
		return nil
	}
	in := n.raw.child(c, key)
	switch {
	case in == nil && sub.label == oneLabel && !sub.ordered:
		return valueNode{cty.EmptyObjectVal, e, at}
	case in == nil && sub.name == "retry":
		return valueNode{cty.NullVal(cty.DynamicPseudoType), e, at}
	case in == nil:
		return nil
	case sub.ordered:
		return n.list(c, sub, in)
	case sub.label == oneLabel:
		return &mapped{in, func(label string, b node) node { return n.of.shaped(b, sub, label) }}
	}
	return n.of.shaped(in, sub, "")
}

// absent is a required argument of a file that is imported without merging:
// reading it is the error (rule 12).
func (c *calc) absent(n *shape, a *argSpec) node {
	_, at := n.where()
	c.errorf(at, "unit/missing-argument", "Missing required argument",
		"The argument %q of this %s block is read through an import, but it is not set. Files that gave it: %s.", a.name, n.spec.name, n.of.e.f.path)
	return valueNode{v: cty.DynamicVal}
}

func (n *shape) list(c *calc, sub *blockSpec, in node) node {
	var vals []cty.Value
	labels, _ := in.keys(c)
	for _, l := range labels {
		vals = append(vals, n.of.shaped(in.child(c, l), sub, l).value(c))
	}
	e, at := in.where()
	return valueNode{cty.TupleVal(vals), e, at}
}

// typed converts an argument to its type.
func typed(n node, a *argSpec) node {
	if a.ty == cty.DynamicPseudoType {
		return n
	}
	return &converted{n, func(c *calc, v cty.Value) cty.Value {
		_, at := n.where()
		place := source.Range{}
		if at != nil {
			place = *at
		}
		return c.convert(v, a.ty, a.name, place)
	}}
}

var errHuge = errors.New("the number has too many digits")

// convert converts a value; the error stands at the argument.
func (c *calc) convert(v cty.Value, ty cty.Type, name string, at source.Range) cty.Value {
	if c.stuck() {
		return cty.UnknownVal(ty)
	}
	if v.Type().Equals(ty) || ty == cty.DynamicPseudoType {
		return v
	}
	out, err := v, errHuge
	if !hugeNumber(v) {
		out, err = convert.Convert(v, ty)
	}
	if err != nil {
		c.add(diag.List{{
			Code: "unit/wrong-type", Summary: "Incorrect attribute value type", At: &at,
			Detail: fmt.Sprintf("Inappropriate value for attribute %q: %s.", name, lang.ErrorText(err)),
		}})
		return cty.UnknownVal(ty)
	}
	return out
}

// path shows a path that an import rebased as the unit would write it.
func (n *shape) path(out, in node, a *argSpec) node {
	if e, _ := in.where(); n.of.style != renderStyle || !a.path || e == nil || e.role != importRole {
		return out
	}
	return &converted{out, func(_ *calc, v cty.Value) cty.Value {
		if v.Type().IsListType() && known(v) {
			var all []cty.Value
			for _, p := range v.AsValueSlice() {
				all = append(all, relativeToUnit(p, n.of.e.dir))
			}
			return cty.TupleVal(all)
		}
		return relativeToUnit(v, n.of.e.dir)
	}}
}
