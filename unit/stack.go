package unit

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// StackDir is the directory next to a stack file in which its units are generated.
const StackDir = ".terragrunt-stack"

// A Stack is a stack file: the units and stacks that it generates.
type Stack struct {
	Dir  string
	Path string
	l    *Loader
	e    *evaluation
}

// A StackItem is one unit or stack to generate.
type StackItem struct {
	Kind   string // unit or stack
	Name   string
	Key    addr.Key // of an instance of a block with an expansion; the zero Key without one
	Source string   // the address of the unit, as for modules; relative to the directory of the stack file
	Dir    string   // the absolute directory in which the item is generated
	// Values is the text of the values file. nil means that the block has no values.
	Values []byte
	// AutoInclude is the text of the autoinclude file. nil means that there is none.
	AutoInclude []byte
	// Validate reports whether the fetched directory must contain a unit or stack file. It
	// is false with no_validation, and for items generated next to the stack file, which
	// may be any directory.
	Validate            bool
	Mutable             bool
	UpdateSourceWithCAS bool
	At                  source.Range
}

// Address returns the name of the item, with the index of an instance: app or app["web"].
func (i *StackItem) Address() string { return i.Name + i.Key.String() }

// AutoIncludeFile returns the name of the autoinclude file of an item.
func (i *StackItem) AutoIncludeFile() string {
	if i.Kind == "stack" {
		return syntax.StackAutoIncludeName
	}
	return syntax.AutoIncludeName
}

// Stack reads the stack file at path, which is the file or its directory.
func (l *Loader) Stack(t *demand.Task, path string) (*Stack, diag.List) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.env.WorkingDir, path)
	}
	if l.disk.IsDir(path) {
		path = filepath.Join(path, syntax.StackName)
	}
	if !l.disk.Exists(path) {
		return nil, codeErr(nil, diag.CodeUnitNoStackFile, "No stack file", "There is no file %s.", path)
	}
	e := l.shared(path, readRole)
	if e.file().Root == nil {
		return nil, e.file().Diags
	}
	return &Stack{Dir: e.file().Dir, Path: e.file().Path, l: l, e: e}, e.file().Diags
}

// Items evaluates the unit and stack blocks, including those of included stack files, in
// the order of the configuration. The result contains each instance of a block with an
// expansion, and no disabled block. If there are errors, it returns the items without errors.
func (s *Stack) Items(t *demand.Task) ([]StackItem, diag.List) {
	c := s.l.on(t, s.e, false) // functions treat a stack as a unit: get_original_terragrunt_dir() returns its directory
	var out []StackItem
	for _, b := range c.stackBlocks(s.e) {
		for _, p := range c.instancesOf(b) {
			if it, ok := c.stackItem(p); ok {
				out = append(out, it)
			}
		}
	}
	return c.distinct(out), c.ds
}

// Files returns the files, other than the stack file, that its configuration depends on: included
// stack files, and files that functions read or mark as read.
func (s *Stack) Files(t *demand.Task) ([]string, diag.List) {
	c := s.l.on(t, s.e, false)
	u := &Unit{ID: s.Dir, Dir: s.Dir, Path: s.Path, l: s.l, e: s.e, within: s.e}
	u.everyLocal(c, s.e)
	for _, b := range c.stackBlocks(s.e) {
		if b.e != s.e {
			c.readFile(b.e.file().Path)
		}
		for _, p := range c.instancesOf(b) {
			c.stackItem(p)
		}
	}
	if c.facts == nil {
		return nil, c.ds
	}
	files := slices.DeleteFunc(slices.Clone(c.facts.files), func(path string) bool { return path == s.Path })
	slices.Sort(files)
	return files, c.ds
}

// Origin returns the stack file for explanations, as Unit.Origin. Its parts are local.NAME, values.NAME,
// unit.NAME.path and stack.NAME.path.
func (s *Stack) Origin(t *demand.Task) explanation.InputSource {
	u := &Unit{ID: s.Dir, Dir: s.Dir, Path: s.Path, l: s.l, e: s.e, within: s.e}
	return u.Origin(t)
}

// Declares reports whether the stack file has a unit or stack block, enabled or not.
func (s *Stack) Declares(t *demand.Task) bool {
	return len(s.l.on(t, s.e, false).stackBlocks(s.e)) > 0
}

// stackPart is a unit or stack block with its evaluation, or an instance of one.
type stackPart struct {
	e *evaluation
	b *syntax.Block
	i *instance // nil for a block without an expansion
}

// instancesOf returns the instances of a block, or the block itself if it has no expansion.
func (c *evaluator) instancesOf(p stackPart) []stackPart {
	x := p.b.First("expansion")
	if x == nil {
		return []stackPart{p}
	}
	one := c.sub(c.leaf, false)
	defer c.merge(one)
	for _, a := range x.Attrs {
		one.noPaths(a, a.Name)
	}
	if one.failed {
		return nil
	}
	var out []stackPart
	for _, i := range one.expansion(&blockNode{p.e, x}, p.b.Spec.Name) {
		out = append(out, stackPart{i.in(p.e, p.e, p.b.Spec.Name+" "+p.b.Label), p.b, &i})
	}
	return out
}

// stackBlocks returns the blocks of a stack file, of the autoinclude file next to it, and
// of included stack files. A block in the autoinclude file replaces the block of the same
// name.
func (c *evaluator) stackBlocks(e *evaluation) []stackPart {
	var out []stackPart
	add := func(e *evaluation) {
		for _, b := range e.file().Root.Blocks {
			if n := b.Spec.Name; n == "unit" || n == "stack" {
				out = append(out, stackPart{e: e, b: b})
			}
		}
	}
	for _, b := range e.file().Root.Of("include") {
		v := c.importArg(e, b, "path")
		if c.stuck() || !syntax.Known(v) {
			continue
		}
		at := b.Attr("path").Expr.At()
		full := functions.AbsPath(e.dir, v.AsString())
		if !c.l.disk.Exists(full) || c.l.disk.IsDir(full) {
			c.errorf(&at, diag.CodeUnitFileNotFound, "Included file not found", "There is no file %s. Relative paths count from %s.", full, e.dir)
			continue
		}
		f := c.l.file(full, syntax.Language().StackPart)
		c.add(f.Diags)
		if f.Root != nil {
			in := newEvaluation(c.l, f, stackRole, e.dir)
			in.of.top, in.vals = e, e.vals
			add(in)
		}
	}
	add(e)
	path := filepath.Join(e.dir, syntax.StackAutoIncludeName)
	if c.l.disk.Exists(path) {
		f := c.l.file(path, syntax.Language().StackPart)
		c.add(f.Diags)
		if f.Root != nil {
			auto := newEvaluation(c.l, f, stackRole, e.dir)
			auto.of.top, auto.vals = e, e.vals
			out = slices.DeleteFunc(out, func(p stackPart) bool {
				return slices.ContainsFunc(f.Root.Blocks, func(b *syntax.Block) bool { return b.Spec == p.b.Spec && b.Label == p.b.Label })
			})
			add(auto)
		}
	}
	return out
}

// stackItem evaluates one block. ok is false after an error, and if the block is disabled.
func (c *evaluator) stackItem(p stackPart) (it StackItem, ok bool) {
	one := c.sub(c.leaf, false)
	defer c.merge(one)
	d := &decoder{c: one, n: &blockNode{p.e, p.b}, spec: p.b.Spec, name: p.b.Label}
	for _, name := range [...]string{"source", "path", "enabled"} {
		if a := p.b.Attr(name); a != nil {
			one.noPaths(a, name)
		}
	}
	if one.failed || !d.flag("enabled", true) || one.failed {
		return StackItem{}, false
	}
	it = StackItem{Kind: p.b.Spec.Name, Name: p.b.Label, Source: d.text("source"), Validate: !d.flag("no_validation", false) && !d.flag("no_dot_terragrunt_stack", false),
		Mutable: d.flag("mutable", false), UpdateSourceWithCAS: d.flag("update_source_with_cas", false), At: p.b.At}
	if p.i != nil {
		it.Key = p.i.address()
	}
	if it.Dir, ok = one.stackDir(p, d); !ok {
		return it, false
	}
	if a := p.b.Attr("values"); a != nil {
		v := one.eval(p.e, a.Expr)
		if !one.stuck() {
			one.redact(&exprNode{e: p.e, x: a.Expr}, v, one.facts)
		}
		if !one.stuck() && !isNullValue(v) {
			it.Values = one.valuesFile(v, a.Expr.At())
		}
	}
	if b := p.b.First("autoinclude"); b != nil {
		it.AutoInclude = one.autoInclude(p.e, b, it.Dir)
	}
	return it, !one.failed
}

func isNullValue(v cty.Value) bool {
	v, _ = v.Unmark()
	return v.IsKnown() && v.IsNull()
}

// noPaths reports references to the paths of units in arguments that determine those paths.
func (c *evaluator) noPaths(a *syntax.Attr, name string) {
	for _, ref := range syntax.RefsOf(a.Expr) {
		if r := ref.RootName(); r == "unit" || r == "stack" {
			at := ref.SourceRange()
			c.errorf(&at, diag.CodeUnitEarlyReference, "Reference too early", "%q cannot refer to %s: where units go must be known first.", name, syntax.RefText(ref))
		}
	}
}

// placeable reports whether the path of a block can be computed without those of other
// blocks. The error is reported when the block is evaluated.
func placeable(b *syntax.Block) bool {
	attrs := []*syntax.Attr{b.Attr("path"), b.Attr("no_dot_terragrunt_stack")}
	if x := b.First("expansion"); x != nil {
		attrs = append(attrs, x.Attrs...)
	}
	for _, a := range attrs {
		if a == nil {
			continue
		}
		for _, ref := range syntax.RefsOf(a.Expr) {
			if r := ref.RootName(); r == "unit" || r == "stack" {
				return false
			}
		}
	}
	return true
}

// stackDir returns the directory in which an item is generated.
func (c *evaluator) stackDir(p stackPart, d *decoder) (string, bool) {
	path := d.text("path")
	if c.failed {
		return "", false
	}
	at := p.b.At
	if a := p.b.Attr("path"); a != nil {
		at = a.Expr.At()
	}
	root := filepath.Join(p.e.env().dir, StackDir)
	if d.flag("no_dot_terragrunt_stack", false) {
		root = p.e.env().dir
	}
	dir := filepath.Join(root, filepath.FromSlash(path))
	if path == "" || filepath.IsAbs(path) || dir == root || !strings.HasPrefix(dir, root+string(filepath.Separator)) {
		c.errorf(&at, diag.CodeUnitStackPath, "Invalid path in a stack", "The path %q must be relative and lead to a directory within the stack.", path)
		return "", false
	}
	return dir, true
}

// distinct reports duplicate names and directories, and omits the second of two such items.
func (c *evaluator) distinct(items []StackItem) []StackItem {
	names, dirs := map[string]*StackItem{}, map[string]*StackItem{}
	var out []StackItem
	for i := range items {
		it := &items[i]
		if first := names[it.Address()]; first != nil {
			c.add(codeErr(&it.At, diag.CodeUnitStackDuplicate, "Duplicate name in a stack", "%q is the name of another %s already, at %s. All names in a stack must differ.", it.Address(), first.Kind, first.At))
			continue
		}
		names[it.Address()] = it
		if first := dirs[it.Dir]; first != nil {
			hint := ""
			if it.Key != (addr.Key{}) && first.Name == it.Name && first.Kind == it.Kind {
				hint = " Let the path of an expanded block contain each.key or count.index."
			}
			c.add(codeErr(&it.At, diag.CodeUnitStackDuplicate, "Duplicate path in a stack", "The %s %q at %s goes to the same directory.%s", first.Kind, first.Address(), first.At, hint))
			continue
		}
		dirs[it.Dir] = it
		out = append(out, *it)
	}
	return out
}

// valuesFile returns the text of a values file.
func (c *evaluator) valuesFile(v cty.Value, at source.Range) []byte {
	v, _ = v.UnmarkDeep()
	names, ok := valueKeys(v)
	if !ok {
		c.errorf(&at, diag.CodeUnitNotAMap, "Map expected", "The values of a unit must be a map or an object, but this is %s.", friendly(v.Type()))
		return nil
	}
	var text configText
	text.b.WriteString("# Auto-generated by the terragrunt.stack.hcl file by Terragrunt. Do not edit manually\n")
	slices.Sort(names)
	for _, k := range names {
		in := valueNode{v: v}.child(nil, k).(valueNode).v
		if !hclsyntax.ValidIdentifier(k) || !in.IsWhollyKnown() {
			c.errorf(&at, diag.CodeUnitStackValues, "Invalid values", "The value %q cannot be written to a values file: its name must be an identifier, and it must be known.", k)
			return nil
		}
		text.attribute(k, plain(in))
	}
	return text.formatted()
}

// stackNode is unit.* or stack.* in a stack file: the directories of the items.
func (c *evaluator) stackNode(e *evaluation, kind string) node {
	if e.file().Root == nil || e.role != stackRole {
		return nil
	}
	n := &rootNode{group: newGroup(e, nil), what: kind}
	for _, p := range c.stackBlocks(e) {
		if p.b.Spec.Name != kind || !placeable(p.b) {
			continue
		}
		at := p.b.At
		if p.b.First("expansion") == nil {
			n.put(p.b.Label, c.pathNode(p))
			continue
		}
		all := &instances{newGroup(p.e, &at)}
		for _, i := range c.instancesOf(p) {
			all.put(i.i.key, c.pathNode(i))
		}
		n.put(p.b.Label, all)
	}
	return n
}

// pathNode is an item in unit.* or stack.*.
func (c *evaluator) pathNode(p stackPart) node {
	at := p.b.At
	g := newGroup(p.e, &at)
	d := &decoder{c: c.sub(c.leaf, false), n: &blockNode{p.e, p.b}, spec: p.b.Spec, name: p.b.Label}
	if dir, ok := d.c.stackDir(p, d); ok {
		g.put("path", valueNode{cty.StringVal(dir), p.e, &at})
	}
	c.merge(d.c)
	return g
}

// instances is a block with an expansion in unit.* or stack.*.
type instances struct{ *group }

func (n *instances) open(*evaluator) node { return n }
func (n *instances) numbered()            {}

// stackConfig is a stack file as an object.
type stackConfig struct{ e *evaluation }

func (n *stackConfig) open(*evaluator) node                { return n }
func (n *stackConfig) value(c *evaluator) cty.Value        { return objectOf(c, n) }
func (n *stackConfig) where() (*evaluation, *source.Range) { return n.e, nil }

func (n *stackConfig) keys(*evaluator) ([]string, bool) {
	var names []string
	root := n.e.file().Root
	if root.First("locals") != nil {
		names = append(names, "local")
	}
	for _, k := range [...]string{"stack", "unit"} {
		if root.First(k) != nil {
			names = append(names, k)
		}
	}
	return names, true
}

func (n *stackConfig) child(c *evaluator, key string) node {
	switch key {
	case "local":
		if n.e.file().Root.First("locals") != nil {
			return &plainNode{&locals{n.e}}
		}
	case "unit", "stack":
		bs := n.e.file().Root.Of(key)
		if len(bs) == 0 {
			return nil
		}
		g := newGroup(n.e, nil)
		for _, b := range bs {
			if b.First("expansion") == nil {
				g.put(b.Label, stackBlockNode(stackPart{e: n.e, b: b}))
				continue
			}
			all := &instances{newGroup(n.e, &b.At)}
			for _, p := range c.instancesOf(stackPart{e: n.e, b: b}) {
				all.put(p.i.key, stackBlockNode(p))
			}
			g.put(b.Label, all)
		}
		return g
	}
	return nil
}

// stackBlockNode is a unit or stack block as an object, as read_terragrunt_config returns it.
func stackBlockNode(p stackPart) node {
	item := newGroup(p.e, &p.b.At)
	item.put("name", valueNode{cty.StringVal(p.b.Label), p.e, &p.b.At})
	for _, a := range p.b.Attrs {
		item.put(a.Name, &exprNode{e: p.e, x: a.Expr, at: &a.At})
	}
	return &plainNode{item}
}
