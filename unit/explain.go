package unit

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/unit/syntax"

	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Explaining
//
// Explain follows the path again over the nodes that produced the value. Of two layers it
// chooses the one whose value was used, and of a block the argument. At an expression,
// package origin continues, and calls back for the references in it. The evaluation keeps
// no data for this.

// Explain returns where a part of the unit comes from. path is a reference, such as
// inputs.tags.team, remote_state.config.key or local.region.
func (u *Unit) Explain(t *demand.Task, path string) (*explanation.Explanation, diag.List) {
	x := &origin.Explainer{Set: u.l.Sources(), Unit: u.Origin(t)}
	return x.Explain(t, path)
}

// Origin returns the unit for explanations of its module. The result uses the task, so both
// belong to one goroutine.
func (u *Unit) Origin(t *demand.Task) explanation.InputSource { return u.OriginIn(t, "") }

// OriginOfSet is Origin for parts whose values are known not to be null. It evaluates less.
func (u *Unit) OriginOfSet(t *demand.Task) explanation.InputSource {
	x := u.originIn(t, "")
	x.set = true
	return x
}

// OriginIn is Origin for addresses as they are written in one of the files that the unit reads: local.x
// is the local value of that file. file is its absolute path; "" and a file that the unit does not read
// mean the unit's own file.
func (u *Unit) OriginIn(t *demand.Task, file string) explanation.InputSource {
	return u.originIn(t, file)
}

func (u *Unit) originIn(t *demand.Task, file string) *explained {
	full := u.l.env.Outputs != nil && !u.noOutputs
	return &explained{u: u, t: t, full: full, file: file, texts: map[string]*hcl.File{}, exprs: map[string]map[hcl.Range]hcl.Expression{}}
}

// explained implements explanation.InputSource.
type explained struct {
	u     *Unit
	t     *demand.Task
	full  bool
	set   bool                 // the values of the parts are not null
	file  string               // the file in which addresses are written; "" means the unit's own
	texts map[string]*hcl.File // parsed files on the path, by name
	// exprs contains the outermost expressions of the parsed files, by name and range.
	exprs map[string]map[hcl.Range]hcl.Expression
}

// evaluator returns a new computation, so that an error in one does not affect others.
func (x *explained) evaluator() *evaluator { return x.u.l.on(x.t, x.u.e, x.full) }

// Part implements explanation.InputSource.
func (x *explained) Part(ref hcl.Traversal) (explanation.Way, bool, diag.List) {
	c := x.evaluator()
	name := ref.RootName()
	if name == "locals" {
		name = "local"
	}
	w := &walker{x: x, c: c, label: name, kind: kindOf(name), set: x.set}
	spec := syntax.Language().Unit
	r, isRoot := rootNamed(name)
	var n node
	switch {
	case isRoot && x.u.e.role == stackRole:
		return x.partIn(c, x.u.e, name, ref)
	case isRoot && x.evaluationOf(c) != x.u.e:
		return x.partIn(c, x.evaluationOf(c), name, ref)
	case name == "each" && x.u.mod != nil:
		way, ok := (scope{x, x.u.e}).Follow(ref)
		if !ok {
			return way, true, x.nothing(c, ref, "")
		}
		return way, true, nil
	case isRoot && (r.only == allFiles || r.only == environmentFiles && x.u.mod != nil): // a module has its own module and each
		if way, ok := (scope{x, x.u.e}).Follow(ref); ok && r.only == allFiles && name != "local" {
			return way, true, nil
		}
		n = c.root(x.u.e, name)
	case !isRoot && (spec.Arg(name) != nil || spec.Block(name) != nil):
		n = x.u.field(c, name)
	default:
		return explanation.Way{}, false, nil
	}
	if n == nil {
		return explanation.Way{}, true, x.nothing(c, ref, "")
	}
	if _, why := x.has(n, ref); why != "" {
		return explanation.Way{}, true, x.nothing(c, ref, why)
	}
	way, ok := w.walk(n, ref[1:])
	if !ok {
		return explanation.Way{}, true, x.nothing(c, ref, "")
	}
	return way, true, nil
}

// evaluationOf returns the evaluation of the file in which addresses are written.
func (x *explained) evaluationOf(c *evaluator) *evaluation {
	if x.file == "" || x.file == x.u.Path {
		return x.u.e
	}
	if e, ok := x.evAt(c, source.Range{Filename: x.file}); ok {
		return e
	}
	if v := x.u.e.env().vals(); v != nil && v.file().Path == x.file {
		return v
	}
	if !x.u.l.IsFile(x.file) {
		return x.u.e
	}
	if e := x.u.l.shared(x.file, readRole); e.file().Root != nil { // as read_terragrunt_config reads it
		return e
	}
	return x.u.e
}

// partIn is Part for a name that each file has, in the file of an evaluation.
func (x *explained) partIn(c *evaluator, e *evaluation, name string, ref hcl.Traversal) (explanation.Way, bool, diag.List) {
	ref = append(hcl.Traversal{hcl.TraverseRoot{Name: name}}, ref[1:]...)
	n := c.root(e, name)
	if n == nil {
		return explanation.Way{}, true, x.nothing(c, ref, "")
	}
	if _, why := x.has(n, ref); why != "" {
		return explanation.Way{}, true, x.nothing(c, ref, why)
	}
	way, ok := (scope{x, e}).Follow(ref)
	if !ok {
		return explanation.Way{}, true, x.nothing(c, ref, "")
	}
	return way, true, nil
}

// kindOf returns the kind of a part from the first name of its address.
func kindOf(name string) explanation.Kind {
	if name == "inputs" {
		return explanation.Input
	}
	if r, ok := rootNamed(name); ok {
		return r.kind
	}
	return explanation.Argument
}

// nothing returns the error for a part that the unit does not have, with the reason if it
// is known.
func (x *explained) nothing(c *evaluator, ref hcl.Traversal, why string) diag.List {
	if c.failed && len(c.ds.Errors()) > 0 {
		return c.ds.Errors()
	}
	if why != "" {
		why = " " + why
	}
	return codeErr(nil, diag.CodeUnitExplainPath, "Nothing to explain", "Nothing in this unit gives %s.%s", syntax.RefText(ref), why)
}

// has reports whether a path exists in a node's value. why is the missing part, or "" if
// that is not known.
func (x *explained) has(n node, ref hcl.Traversal) (ok bool, why string) {
	c := x.evaluator()
	r := c.descend(n, ref, 1)
	switch {
	case c.stuck():
		return false, ""
	case r.missing != "":
		return false, r.missing
	case r.used == len(ref):
		return true, ""
	}
	v := r.n.value(c)
	for i := r.used; i < len(ref) && !c.stuck(); i++ {
		bare, _ := v.Unmark()
		if !bare.IsKnown() {
			return true, ""
		}
		next, diags := ref[i : i+1].TraverseRel(bare)
		if !diags.HasErrors() {
			v = next
			continue
		}
		names, _ := valueKeys(bare)
		if key, isName := syntax.StepName(ref[i]); isName {
			why = fmt.Sprintf("There is no %q in %s.", key, syntax.RefText(ref[:i]))
			if near := syntax.Nearest(key, names); near != "" {
				why += fmt.Sprintf(" Did you mean %q?", near)
			}
			return false, why
		}
		return false, fmt.Sprintf("%s has no such element.", syntax.RefText(ref[:i]))
	}
	return true, ""
}

// scope is a file in one evaluation.
type scope struct {
	x *explained
	e *evaluation
}

// Eval implements explanation.Scope.
func (s scope) Eval(x hcl.Expression, names map[string]cty.Value) (cty.Value, diag.List) {
	c := s.x.evaluator()
	v := c.raw(s.e, s.e.file().CompileAlone(x, names))
	if c.failed {
		return cty.DynamicVal, c.ds
	}
	return v, nil
}

// Follow implements explanation.Scope.
func (s scope) Follow(ref hcl.Traversal) (explanation.Way, bool) {
	c := s.x.evaluator()
	root := ref.RootName()
	if root == "each" && s.e.of.each != cty.NilVal && !s.e.of.instance {
		return s.each(c, ref)
	}
	n := c.root(s.e, root)
	if n == nil || c.stuck() {
		return explanation.Way{}, false
	}
	w := &walker{x: s.x, c: c, label: root, kind: kindOf(root)}
	if r, _ := rootNamed(root); r.crosses != "" {
		return w.crossing(n, ref, r.crosses)
	}
	way, ok := w.walk(n, ref[1:])
	if ok && root == "values" {
		way = w.fromStack(s.e.env(), ref[1:], way)
	}
	return way, ok
}

// crossing follows an import or include block into another file.
func (w *walker) crossing(n node, ref hcl.Traversal, kind explanation.Kind) (explanation.Way, bool) {
	path := ref[1:]
	text := ref.RootName()
	if _, bare := n.(*configNode); !bare && len(path) > 0 {
		key, ok := syntax.StepName(path[0])
		if !ok {
			return explanation.Way{}, false
		}
		if n = n.child(w.c, key); n == nil {
			return explanation.Way{}, false
		}
		text += "." + key
		path = path[1:]
	}
	cn, ok := n.(*configNode)
	if !ok || cn.at == nil {
		return w.walk(n, path)
	}
	e, _ := w.x.evAt(w.c, *cn.at)
	stop := explanation.Stop{Kind: kind, Text: fmt.Sprintf("%s is %s", text, w.x.relative(cn.e.file().Path)), At: *cn.at, Layer: w.x.u.layerOf(w.c, e), Whole: len(path) == 0}
	if len(path) == 0 {
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	way, ok := w.walk(cn, path)
	way.Stops = append([]explanation.Stop{stop}, way.Stops...)
	return way, ok
}

// evAt returns the evaluation of the file that contains a range. If no
// file does, it returns the unit's evaluation and false.
func (x *explained) evAt(c *evaluator, at source.Range) (*evaluation, bool) {
	if x.u.Path == at.Filename {
		return x.u.e, true
	}
	for e := range x.u.layers(c) {
		if e.file().Path == at.Filename {
			return e, true
		}
	}
	return x.u.e, false
}

// relative returns a path relative to the unit's directory, with slashes.
func (x *explained) relative(path string) string {
	if rel, err := filepath.Rel(x.u.Dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

// unitAt returns the name of a unit relative to the explained one.
func (x *explained) unitAt(id string) string {
	if name := x.relative(id); name != "." {
		return "the unit " + name
	}
	return "this unit"
}

// each follows each.key and each.value to the for_each of the module block.
func (s scope) each(c *evaluator, ref hcl.Traversal) (explanation.Way, bool) {
	s.e = s.x.u.e
	b := c.moduleBlock(s.e.of.top, s.x.u.Module)
	if b == nil || len(ref) < 2 {
		return explanation.Way{}, false
	}
	what, _ := syntax.StepName(ref[1])
	n, _ := b.child(c, "for_each").(*exprNode)
	if n == nil || what != "key" && what != "value" {
		return explanation.Way{}, false
	}
	w := &walker{x: s.x, c: c}
	stop := w.stop(n, explanation.Repetition, fmt.Sprintf("each.%s is an element of for_each", what))
	v, _ := n.value(c).Unmark()
	if what == "key" || v.Type().IsSetType() {
		stop.Text = fmt.Sprintf("each.%s is the key of the instance [%s]", what, syntax.Quote(s.x.u.Key))
		stop.Value = cty.StringVal(s.x.u.Key)
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	path := append(hcl.Traversal{hcl.TraverseIndex{Key: cty.StringVal(s.x.u.Key)}}, ref[2:]...)
	return explanation.Way{Stops: []explanation.Stop{stop}, Next: &explanation.ExprPart{In: stop.In, Expr: stop.Expr, Path: path}}, true
}

// fromStack continues from a values file in the stack file that it was generated from, if
// generating it again gives the same text.
func (w *walker) fromStack(e *evaluation, path hcl.Traversal, way explanation.Way) explanation.Way {
	values := w.c.l.valuesOf(e)
	if values == nil || values.file().Src == nil {
		return way
	}
	for dir := e.dir; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		if !w.c.l.disk.Exists(filepath.Join(dir, syntax.StackName)) {
			continue
		}
		st, ds := w.c.l.Stack(w.x.t, dir)
		if st == nil || ds.HasErrors() {
			return way
		}
		c := w.x.evaluator()
		for _, b := range c.stackBlocks(st.e) {
			a := b.b.Attr("values")
			if a == nil {
				continue
			}
			for _, p := range c.sub(c.leaf, false).instancesOf(b) {
				it, ok := c.sub(c.leaf, false).stackItem(p)
				if !ok || it.Dir != e.dir || !bytes.Equal(it.Values, values.file().Src.Bytes) {
					continue
				}
				label := fmt.Sprintf("%s.%s.values", it.Kind, it.Address())
				if more, ok := w.At(label, explanation.Values).walk(&exprNode{e: p.e, x: a.Expr, at: &a.At}, path); ok {
					return explanation.Way{Stops: append(way.Stops, more.Stops...), Next: more.Next}
				}
			}
		}
	}
	return way
}

// Read implements explanation.Scope.
func (s scope) Read(call *hclsyntax.FunctionCallExpr, path hcl.Traversal) (explanation.Way, bool) {
	if way, ok := s.dataFiles().Decoded(call, path); ok {
		return way, true
	}
	if call.Name == "get_env" {
		return s.environment(call)
	}
	if call.Name != "read_terragrunt_config" || len(call.Args) == 0 || len(path) == 0 {
		return explanation.Way{}, false
	}
	c := s.x.evaluator()
	n := c.readConfig(s.e, s.e.file().CompileAlone(call, nil))
	if n == nil || c.stuck() {
		return explanation.Way{}, false
	}
	if d, fallback := n.(*exprNode); fallback {
		return explanation.Way{Next: &explanation.ExprPart{In: scope{s.x, s.e}, Expr: call.Args[1], Path: path}}, d != nil
	}
	w := &walker{x: s.x, c: c, kind: explanation.Argument}
	return w.walk(n, path)
}

// environment follows a call of get_env to the variable, or to the default.
func (s scope) environment(call *hclsyntax.FunctionCallExpr) (explanation.Way, bool) {
	if len(call.Args) == 0 || call.ExpandFinal {
		return explanation.Way{}, false
	}
	name, ds := s.Eval(call.Args[0], nil)
	name, _ = name.Unmark()
	if ds.HasErrors() || !syntax.IsString(name) {
		return explanation.Way{}, false
	}
	stop := explanation.Stop{Kind: explanation.Environment, Text: "environment variable " + name.AsString(), At: call.Range(), Layer: s.x.u.layerOf(s.x.evaluator(), s.e), Bare: true}
	if _, set := s.x.u.l.env.Machine.Environ.Lookup(name.AsString()); set {
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	if len(call.Args) < 2 {
		return explanation.Way{}, false
	}
	stop.Text += " is not set"
	return explanation.Way{Stops: []explanation.Stop{stop}, Next: &explanation.ExprPart{In: s, Expr: call.Args[1]}}, true
}

// A walker follows a path over nodes to the expression that contains the rest of the path.
type walker struct {
	x     *explained
	c     *evaluator
	label string // the address of the node
	kind  explanation.Kind
	deep  int
	set   bool // the value at the path is not null
}

func (w *walker) At(label string, kind explanation.Kind) *walker {
	n := *w
	n.label, n.kind = label, kind
	n.deep++
	return &n
}

// into returns the walker after one step.
func (w *walker) into(step hcl.Traverser) *walker {
	return w.At(w.label+pathText(hcl.Traversal{step}), w.kind)
}

// pathText returns the text of a path.
func pathText(path hcl.Traversal) string {
	return strings.TrimPrefix(syntax.RefText(append(hcl.Traversal{hcl.TraverseRoot{Name: "x"}}, path...)), "x")
}

// stop returns the definition of an expression node.
func (w *walker) stop(n *exprNode, kind explanation.Kind, text string) explanation.Stop {
	e, at := n.where()
	return explanation.Stop{Kind: kind, Text: text, At: *at, Layer: w.x.u.layerOf(w.c, e), In: scope{w.x, e}, Expr: w.x.syntax(e.file(), n.x)}
}

// header returns the header of a block, or another definition without an expression.
func (w *walker) header(n node, kind explanation.Kind, text string) (explanation.Stop, bool) {
	e, at := n.where()
	if at == nil {
		return explanation.Stop{}, false
	}
	return explanation.Stop{Kind: kind, Text: text, At: *at, Layer: w.x.u.layerOf(w.c, e)}, true
}

// walk follows a path from a node. ok is false if the path does not exist.
func (w *walker) walk(n node, path hcl.Traversal) (way explanation.Way, ok bool) {
	if w.deep > maxFollow {
		return explanation.Way{}, false
	}
	switch n := n.(type) {
	case *joined:
		return w.layered(n, n.lower, n.upper, path)
	case *overlay:
		return w.layered(n, n.lower, n.upper, path)
	case *aliasNode:
		return w.walk(n.whole, path)
	case *exprNode:
		whole, text := n, w.label+pathText(path)
		for len(path) > 0 { // to the item itself, if it is written in the text
			in := itemAt(n.x, path[0])
			if in == nil {
				break
			}
			n = &exprNode{e: n.e, x: in}
			path = path[1:]
		}
		stop := w.stop(n, w.kind, text)
		stop.Path = path
		if whole != n {
			stop.Of = func() hcl.Expression { return w.stop(whole, w.kind, text).Expr }
		}
		return explanation.Way{Stops: []explanation.Stop{stop}, Next: &explanation.ExprPart{In: stop.In, Expr: stop.Expr, Path: path}}, true
	case *converted:
		return w.walk(n.n, path)
	case *plainNode:
		return w.walk(n.n, path)
	case *assigned:
		return w.walk(n.n, path)
	case *outputsNode:
		return w.output(n, path)
	case *moduleOutputs:
		return w.moduleOutput(n, path)
	case *featuresNode:
		return w.feature(n, path)
	case *mapped:
		if len(path) == 0 {
			return w.walk(n.n, path)
		}
	case *shape:
		if len(path) == 0 {
			return w.walk(n.raw, path)
		}
		if key, _ := syntax.StepName(path[0]); n.spec.Member(key) == nil {
			return w.walk(n.raw, path)
		}
	case *depNode:
		if len(path) == 0 {
			return w.walk(n.raw, path)
		}
	case *locals:
		w = w.At("local", explanation.Local)
	case *configNode:
		if len(path) > 0 {
			if key, _ := syntax.StepName(path[0]); key == "inputs" {
				w = w.At("", explanation.Input)
			}
		}
		w = w.At("", w.kind)
	}
	return w.member(n, path)
}

// itemAt returns the item of an object constructor that a step names. It returns nil if
// some keys are not literals.
func itemAt(x *syntax.Expr, step hcl.Traverser) (found *syntax.Expr) {
	key, ok := syntax.StepName(step)
	if !ok {
		return nil
	}
	for i := range x.Items {
		if x.Items[i].KeyX != nil {
			return nil
		}
		if x.Items[i].Key == key {
			found = x.Items[i].X
		}
	}
	return found
}

// member continues in the member that the first step names.
func (w *walker) member(n node, path hcl.Traversal) (explanation.Way, bool) {
	if v, plain := n.(valueNode); plain || len(path) == 0 {
		stop, ok := w.header(n, w.kind, w.label+pathText(path))
		if !ok {
			return w.parts(n, path)
		}
		if plain {
			stop.Value, _ = path.TraverseRel(v.v)
			stop.Path = path
		} else {
			stop.Kind = explanation.Block
			stop.Whole = true
			if one := w.x.evaluator(); len(path) == 0 {
				if v := n.value(one); !one.failed {
					stop.Value = v
				}
			}
		}
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	key, ok := syntax.StepName(path[0])
	if !ok {
		return explanation.Way{}, false
	}
	in := n.child(w.c, key)
	if in == nil {
		return explanation.Way{}, false
	}
	next := w.into(path[0])
	next.label = strings.TrimPrefix(next.label, ".")
	return next.walk(in, path[1:])
}

// parts ends at a node without a definition of its own, such as all local values. It shows
// the members.
func (w *walker) parts(n node, path hcl.Traversal) (explanation.Way, bool) {
	if len(path) > 0 {
		return explanation.Way{}, false
	}
	names, ok := n.keys(w.c)
	if !ok {
		return explanation.Way{}, false
	}
	var way explanation.Way
	for _, k := range names {
		in := n.child(w.c, k)
		if in == nil {
			continue
		}
		step := hcl.TraverseAttr{Name: k}
		if one, ok := w.into(step).walk(in, nil); ok && len(one.Stops) > 0 {
			one.Stops[0].Whole = true
			way.Stops = append(way.Stops, one.Stops[0])
		}
	}
	return way, len(way.Stops) > 0
}

// layered chooses between two layers by the merged value.
func (w *walker) layered(both, lower, upper node, path hcl.Traversal) (explanation.Way, bool) {
	hasLow := w.gives(lower, path)
	if w.set && !hasLow && w.names(upper, path) {
		return w.walk(upper, path)
	}
	hasUp := w.gives(upper, path)
	switch {
	case !hasLow && !hasUp:
		return explanation.Way{}, false
	case !hasUp && !w.nulled(both, upper, path):
		return w.walk(lower, path)
	case !hasLow:
		return w.walk(upper, path)
	}
	for i, s := range path {
		if _, named := syntax.StepName(s); !named {
			return w.element(both, lower, upper, path, i)
		}
	}
	v, low, up := w.value(both, path), w.value(lower, path), w.value(upper, path)
	winner, loser := upper, lower
	fromUp, fromLow := sameValue(v, up), sameValue(v, low)
	if !fromUp && fromLow {
		winner, loser = lower, upper
	}
	way, ok := w.walk(winner, path)
	if !ok || len(way.Stops) == 0 {
		return way, ok
	}
	lost, found := w.loser().walk(loser, path)
	first := &way.Stops[0]
	switch {
	case !found:
	case fromUp || fromLow:
		first.Replaces = append(first.Replaces, replaced(lost)...)
	default:
		first.With = append(first.With, lost)
		if len(lost.Stops) > 0 {
			first.With = append(first.With, lost.Stops[0].With...)
			first.Replaces = append(first.Replaces, lost.Stops[0].Replaces...)
		}
		if v != cty.NilVal {
			first.Value, first.Path = v, path
		}
		first.Kind = explanation.Merged
		way = explanation.Way{Stops: way.Stops[:1]}
	}
	return way, true
}

// replaced returns an overridden way, and the ways that it merges or overrides, nearest first.
func replaced(lost explanation.Way) []explanation.Way {
	out := []explanation.Way{lost}
	if len(lost.Stops) > 0 {
		first := &lost.Stops[0]
		out = append(append(out, first.With...), first.Replaces...)
	}
	return out
}

// nulled reports whether a layer sets the path to null and that null is effective.
func (w *walker) nulled(both, upper node, path hcl.Traversal) bool {
	return valueIsNull(w.value(both, path)) && valueIsNull(w.value(upper, path))
}

func valueIsNull(v cty.Value) bool {
	v, _ = v.Unmark()
	return v != cty.NilVal && v.IsKnown() && v.IsNull()
}

// sameValue reports whether two values are equal. Nulls are equal whatever their types.
func sameValue(a, b cty.Value) bool {
	return a.RawEquals(b) || valueIsNull(a) && valueIsNull(b)
}

// element chooses the layer that an element of a list comes from. Lists are either joined
// or replaced.
func (w *walker) element(both, lower, upper node, path hcl.Traversal, i int) (explanation.Way, bool) {
	list := func(n node) []cty.Value {
		v, _ := w.value(n, path[:i]).Unmark()
		if !syntax.Known(v) || !v.CanIterateElements() {
			return nil
		}
		return v.AsValueSlice()
	}
	all, low, up := list(both), list(lower), list(upper)
	index, _ := path[i].(hcl.TraverseIndex)
	n := 0
	if key := index.Key; key.Type() == cty.Number && syntax.Known(key) {
		f, _ := key.AsBigFloat().Int64()
		n = int(f)
	}
	same := func(a, b []cty.Value) bool {
		return slices.EqualFunc(a, b, func(x, y cty.Value) bool { return x.RawEquals(y) })
	}
	shifted := func(by int) hcl.Traversal {
		out := slices.Clone(path)
		out[i] = hcl.TraverseIndex{Key: cty.NumberIntVal(int64(n - by))}
		return out
	}
	switch {
	case len(all) == len(low)+len(up) && same(all[:len(low)], low):
		if n < len(low) {
			return w.walk(lower, path)
		}
		return w.asked(upper, shifted(len(low)), path, i)
	case len(all) == len(low)+len(up) && same(all[:len(up)], up):
		if n < len(up) {
			return w.walk(upper, path)
		}
		return w.asked(lower, shifted(len(up)), path, i)
	case same(all, up):
		way, ok := w.walk(upper, path)
		if lost, found := w.loser().walk(lower, path[:i]); ok && found && len(way.Stops) > 0 {
			way.Stops[0].Replaces = append(way.Stops[0].Replaces, replaced(lost)...)
		}
		return way, ok
	case same(all, low):
		return w.walk(lower, path)
	}
	return w.layered(both, lower, upper, path[:i])
}

// asked follows a path to an element by its index in the list of one layer. The explanation
// shows the index in the joined list, which the user asked for. The ith step is the index.
func (w *walker) asked(n node, own, asked hcl.Traversal, i int) (explanation.Way, bool) {
	way, ok := w.walk(n, own)
	if ok && len(way.Stops) > 0 {
		first := &way.Stops[0]
		if head, found := strings.CutSuffix(first.Text, pathText(own[i:])); found {
			first.Text = head + pathText(asked[i:])
		}
	}
	return way, ok
}

// gives reports whether a layer has a value at a path.
func (w *walker) gives(n node, path hcl.Traversal) bool {
	c := w.x.evaluator()
	n, whole := stepped(c, n, path)
	if n == nil || !whole {
		return n != nil
	}
	v, _ := n.value(c).Unmark()
	return c.stuck() || v == cty.NilVal || !v.IsKnown() || !v.IsNull() || len(path) == 0
}

// names reports whether a node has something at a path, which may be null.
func (w *walker) names(n node, path hcl.Traversal) bool {
	c := w.x.evaluator()
	n, whole := stepped(c, n, path)
	return n != nil && !(whole && c.stuck())
}

// stepped returns the node at a path in a node, or nil. whole is false if the path leads into a list: the result
// is that of the list.
func stepped(c *evaluator, n node, path hcl.Traversal) (at node, whole bool) {
	for _, s := range path {
		key, ok := syntax.StepName(s)
		if !ok {
			return n, false
		}
		if n = n.open(c).child(c, key); n == nil {
			return nil, true
		}
	}
	return n, true
}

// loser returns the walker for a layer that another one replaces. A value in it may be null.
func (w *walker) loser() *walker {
	n := w.At(w.label, w.kind)
	n.set = false
	return n
}

// value returns the value at a path in a node.
func (w *walker) value(n node, path hcl.Traversal) cty.Value {
	c := w.x.evaluator()
	for i, s := range path {
		key, ok := syntax.StepName(s)
		if !ok {
			v, diags := path[i:].TraverseRel(n.value(c))
			if diags.HasErrors() || c.stuck() {
				return cty.DynamicVal
			}
			return v
		}
		if n = n.open(c).child(c, key); n == nil {
			return cty.DynamicVal
		}
	}
	v := n.value(c)
	if c.stuck() {
		return cty.DynamicVal
	}
	return v
}

// output ends at a dependency, or continues in the mock output that replaces the output.
func (w *walker) output(n *outputsNode, path hcl.Traversal) (explanation.Way, bool) {
	d := n.d
	name := "dependency." + d.label + ".outputs" + pathText(path)
	stop, ok := w.header(d, explanation.Dependency, name)
	if !ok {
		return explanation.Way{}, false
	}
	stop.Path = append(hcl.Traversal{hcl.TraverseAttr{Name: "outputs"}}, path...)
	c := w.x.evaluator()
	target, ok := d.target(c)
	if !ok {
		stop.Text += " is an output of another unit"
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	stop.Text = fmt.Sprintf("%s is an output of %s", name, w.x.unitAt(string(target)))
	stop.Output = unitOutput(string(target), path)
	_, at := d.where()
	real, has, failed := c.l.outputsOf(c.t, target, *at)
	mocks := d.raw.child(c, "mock_outputs")
	v := n.value(c)
	if c.stuck() {
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	if part, diags := path.TraverseRel(v); !diags.HasErrors() {
		stop.Value = part
	}
	if has && stop.Value == cty.NilVal {
		if why := missingOutput(v, path); why != "" {
			return explanation.Way{Stops: []explanation.Stop{stop, {Kind: explanation.Failed, Text: why}}}, true
		}
	}
	switch {
	case has:
	case len(failed) > 0:
		stop.Text += ", whose state cannot be read"
	default:
		stop.Text += ", which has none yet"
	}
	if whole := len(path) == 0; mocks == nil || whole && has || !whole && !w.gives(mocks, path) {
		return explanation.Way{Stops: append([]explanation.Stop{stop}, w.assignedFrom(d)...)}, true
	}
	if has {
		if _, diags := path.TraverseRel(real); !diags.HasErrors() || stop.Value == cty.NilVal {
			return explanation.Way{Stops: []explanation.Stop{stop}}, true
		}
	} else if stop.Value == cty.NilVal || !stop.Value.IsKnown() {
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	mock, ok := w.At("mock_outputs", explanation.MockOutputs).walk(mocks, path)
	if !ok {
		return explanation.Way{Stops: []explanation.Stop{stop}}, true
	}
	mock.Stops = append([]explanation.Stop{stop}, mock.Stops...)
	return mock, true
}

// unitOutput returns the output of a unit to which a path in its outputs leads.
func unitOutput(id string, path hcl.Traversal) *explanation.UnitOutput {
	out := &explanation.UnitOutput{Unit: id}
	if len(path) > 0 {
		out.Name, _ = syntax.StepName(path[0])
	}
	return out
}

// missingOutput describes the part of a path that outputs lack. It returns "" if they have
// all of it, or are unknown.
func missingOutput(outputs cty.Value, path hcl.Traversal) string {
	for i, s := range path {
		bare, _ := outputs.Unmark()
		if !bare.IsKnown() {
			return ""
		}
		next, diags := path[i : i+1].TraverseRel(bare)
		if !diags.HasErrors() {
			outputs = next
			continue
		}
		key, named := syntax.StepName(s)
		if !named {
			return "the output has no such element"
		}
		why := fmt.Sprintf("the output has no %q", key)
		if i == 0 {
			why = fmt.Sprintf("the unit has no output %q", key)
		}
		names, _ := valueKeys(bare)
		if near := syntax.Nearest(key, names); near != "" {
			why += fmt.Sprintf(". Did you mean %q?", near)
		}
		return why
	}
	return ""
}

// assignedFrom returns the block from which an assigned dependency was read.
func (w *walker) assignedFrom(d *depNode) []explanation.Stop {
	a, ok := d.raw.(*assigned)
	if !ok {
		return nil
	}
	stop, ok := w.header(a.n.open(w.c), explanation.Dependency, "dependency."+d.label)
	if _, at := d.where(); !ok || stop.At.Filename == at.Filename {
		return nil
	}
	return []explanation.Stop{stop}
}

// moduleOutput ends at another module of an environment file.
func (w *walker) moduleOutput(n *moduleOutputs, path hcl.Traversal) (explanation.Way, bool) {
	stop, ok := w.header(n, explanation.Dependency, "")
	if !ok {
		return explanation.Way{}, false
	}
	stop.Text = fmt.Sprintf("module.%s.outputs%s is an output of %s", n.m.name, pathText(path), w.x.unitAt(string(n.id())))
	stop.Path = append(hcl.Traversal{hcl.TraverseAttr{Name: "outputs"}}, path...)
	stop.Output = unitOutput(string(n.id()), path)
	c := w.x.evaluator()
	if v := n.value(c); !c.failed {
		if part, diags := path.TraverseRel(v); !diags.HasErrors() {
			stop.Value = part
		}
	}
	return explanation.Way{Stops: []explanation.Stop{stop}}, true
}

// feature continues in the default of a feature flag, or ends at the command line.
func (w *walker) feature(n *featuresNode, path hcl.Traversal) (explanation.Way, bool) {
	if len(path) == 0 || n.raw == nil {
		return w.member(n, path)
	}
	label, _ := syntax.StepName(path[0])
	raw := n.raw.child(w.c, label)
	if raw == nil {
		return explanation.Way{}, false
	}
	def, ok := w.At("feature."+label+".default", explanation.Feature).walk(raw, hcl.Traversal{hcl.TraverseAttr{Name: "default"}})
	if ok && len(def.Stops) > 0 {
		def.Stops[0].Text = "feature." + label + ".value is the default of the flag"
	}
	if _, given := w.c.l.env.Request.Features[label]; !given {
		return def, ok
	}
	stop := explanation.Stop{Kind: explanation.Flag, Text: "feature." + label + ".value", Layer: &source.Layer{Kind: source.Flag, Name: "--feature"}}
	if name := w.c.l.env.Request.FeaturesFrom; name != "" {
		stop.Kind, stop.Layer = explanation.Environment, &source.Layer{Kind: source.Environment, Name: name}
	}
	if v := n.child(w.c, label); v != nil && !w.c.stuck() {
		if v = v.child(w.c, "value"); v != nil {
			stop.Value = v.value(w.c)
		}
	}
	if ok {
		stop.Replaces = replaced(def)
	}
	return explanation.Way{Stops: []explanation.Stop{stop}}, true
}

// syntax returns the HCL expression from the text of the file, because a compiled
// expression may not keep it.
func (x *explained) syntax(f *syntax.File, e *syntax.Expr) hcl.Expression {
	if _, gone := e.Expression.(*syntax.Placed); !gone && e.Expression != nil {
		return e.Expression
	}
	at := e.At()
	if e.Kind == syntax.Reference { // most of the expressions, so that most files are not parsed again
		return &hclsyntax.ScopeTraversalExpr{Traversal: e.Ref, SrcRange: at}
	}
	parsed := x.texts[f.Path]
	if parsed == nil && f.Src != nil {
		if strings.HasSuffix(f.Path, ".json") {
			parsed, _ = hcljson.Parse(f.Src.Bytes, f.Path)
		} else {
			parsed, _ = hclnative.ParseConfig(f.Src.Bytes, f.Path)
		}
		x.texts[f.Path] = parsed
	}
	if parsed == nil {
		return e.Expression
	}
	var found hcl.Expression
	if body, native := parsed.Body.(*hclsyntax.Body); native {
		all := x.exprs[f.Path]
		if all == nil {
			all = map[hcl.Range]hcl.Expression{}
			_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
				if in, ok := n.(hclsyntax.Expression); ok && all[n.Range()] == nil {
					all[n.Range()] = in
				}
				return nil
			})
			x.exprs[f.Path] = all
		}
		found = all[at]
	} else {
		attrs, _ := parsed.Body.JustAttributes()
		for _, name := range slices.Sorted(maps.Keys(attrs)) {
			if in := within(attrs[name].Expr, at); in != nil {
				found = in
			}
		}
	}
	if found == nil {
		return e.Expression
	}
	return found
}

// within returns the innermost JSON expression that contains a range, or nil.
func within(x hcl.Expression, at source.Range) hcl.Expression {
	if own := x.Range(); at.Start.Byte < own.Start.Byte || at.End.Byte > own.End.Byte {
		return nil
	}
	if pairs, diags := hcl.ExprMap(x); !diags.HasErrors() {
		for _, p := range pairs {
			if in := within(p.Value, at); in != nil {
				return in
			}
		}
	} else if list, diags := hcl.ExprList(x); !diags.HasErrors() {
		for _, el := range list {
			if in := within(el, at); in != nil {
				return in
			}
		}
	}
	return x
}
