package unit

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A head is what a file takes from others: its imports and includes.
type head struct {
	imports  []*imported
	includes []*included
	auto     *ev // the autoinclude file's evaluation, or nil
}

type mode uint8

const (
	noMerge mode = iota
	shallow
	deep
)

type imported struct {
	name string
	at   source.Range // of the block
	e    *ev
	mode mode
}

type included struct {
	label  string
	bare   bool
	at     source.Range
	e      *ev
	mode   mode
	expose bool
	path   string // as written
}

func (h *head) importOf(name string) *imported {
	for _, i := range h.imports {
		if i.name == name {
			return i
		}
	}
	return nil
}

// head reads the imports and includes of a file, which come before all else.
func (c *calc) head(e *ev) *head {
	r := c.cellOf(e, headPart)
	if r.h == nil {
		return &head{}
	}
	return r.h
}

func (c *calc) buildHead(e *ev) *head {
	h := &head{}
	if e.role == valuesRole {
		return h
	}
	root := e.f.root
	imps, incs := root.of("import"), root.of("include")
	c.checkHead(e, imps, incs)
	for _, b := range imps {
		if i := c.importBlock(e, b); i != nil {
			h.imports = append(h.imports, i)
		}
	}
	for _, b := range incs {
		if i := c.includeBlock(e, b); i != nil {
			h.includes = append(h.includes, i)
		}
	}
	if e.role == leafRole {
		path := filepath.Join(e.dir, AutoIncludeName)
		if c.l.exists(path) {
			c.readFile(path)
			f := c.l.file(path, languageTable().auto)
			c.add(f.ds)
			if f.root != nil {
				h.auto = e.included(f, "", autoRole)
			}
		}
	}
	return h
}

// checkHead holds the rules on which blocks may stand together.
func (c *calc) checkHead(e *ev, imps, incs []*block) {
	if len(imps) > 0 && e.role == includeRole {
		c.errorf(&imps[0].at, "unit/import-in-included", "Import in an included file",
			"This file is included by %s. An included file is evaluated as a part of the file that includes it, so it cannot import others. Move the import to the including file, or import this file instead of including it.", e.child.f.path)
	}
	if len(imps) > 0 && len(incs) > 0 {
		at, other := incs[0].at, imps[0].at
		if at.Start.Byte < other.Start.Byte {
			at, other = other, at
		}
		c.errorf(&at, "unit/import-and-include", "Import and include in one file",
			"A file either imports or includes others, not both; the other kind stands at %s. Turn the include blocks into import blocks.", other)
	}
	if e.role == includeRole && len(incs) > 0 {
		c.errorf(&incs[0].at, "unit/include-levels", "Too many levels of inclusion",
			"This file is included by %s, and an included file cannot include others. Use import blocks, which can be chained.", e.child.f.path)
	}
	bare := 0
	for _, b := range incs {
		if !b.labeled {
			if bare++; bare > 1 {
				c.errorf(&b.at, "unit/bare-include", "Several include blocks without label",
					"Only one include block may stand without a label. Give each of them a name.")
			}
		}
	}
	for _, b := range imps {
		if !hclsyntax.ValidIdentifier(b.label) {
			c.errorf(&b.labelAt, "unit/import-name", "Invalid import name",
				"The name of an import must be an identifier: letters, digits, underscores and dashes, not beginning with a digit.")
		}
	}
}

// early checks that an argument of an import or include block needs nothing
// that is read later.
func (c *calc) early(b *block, a *attr) bool {
	ok := true
	a.x.eachRef(func(ref hcl.Traversal) {
		root := ref.RootName()
		if root == "values" || !ok {
			return
		}
		switch root {
		case "local", "import", "include", "dependency", "feature", "module":
			at := ref.SourceRange()
			ok = false
			c.errorf(&at, "unit/early-reference", "Reference too early",
				"The %s block reads %s, but %ss are read first, before anything else in the file. Their arguments may only use functions and values.", b.spec.name, refText(ref), b.spec.name)
		}
	})
	return ok
}

// headArg evaluates an argument of an import or include block.
func (c *calc) headArg(e *ev, b *block, name string) cty.Value {
	a := b.attr(name)
	if a == nil {
		spec := b.spec.arg(name)
		if spec.required {
			c.missingArg(b.at, name)
		}
		return cty.NullVal(spec.ty)
	}
	if !c.early(b, a) {
		return cty.UnknownVal(b.spec.arg(name).ty)
	}
	v := c.convert(c.eval(e, a.x), b.spec.arg(name).ty, name, a.x.at())
	v, _ = v.Unmark()
	return v
}

func (c *calc) missingArg(at source.Range, name string) {
	c.errorf(&at, "unit/missing-argument", "Missing required argument", "The argument %q is required, but no definition was found.", name)
}

func (c *calc) importBlock(e *ev, b *block) *imported {
	path := c.headArg(e, b, "config_path")
	merge, deepMerge := c.headArg(e, b, "merge"), c.headArg(e, b, "deep_merge")
	if c.stuck() || !known(path) {
		if a := b.attr("config_path"); a != nil && !c.stuck() {
			at := a.x.at()
			c.errorf(&at, "unit/import-path", "Invalid import path", "The path of an imported file must be known and cannot be null.")
		}
		return nil
	}
	i := &imported{name: b.label, at: b.at}
	isTrue := func(v cty.Value) bool { return known(v) && v.True() }
	switch {
	case isTrue(merge) && isTrue(deepMerge):
		c.errorf(&b.at, "unit/import-modes", "Two ways of merging", "An import can have merge or deep_merge, not both.")
		return nil
	case isTrue(merge):
		i.mode = shallow
	case isTrue(deepMerge):
		i.mode = deep
	}
	at := b.attr("config_path").x.at()
	full, ok := c.configAt(path.AsString(), e.f.dir, &at, "Imported file not found")
	if !ok {
		return nil
	}
	if filepath.Base(full) == StackName {
		c.errorf(&at, "unit/import-stack", "Import of a stack file", "%s is a stack file, which holds nothing that could be imported.", full)
		return nil
	}
	i.e = c.l.shared(full, importRole)
	c.readFile(i.e.f.path)
	c.add(i.e.f.ds)
	if i.e.f.root == nil {
		return nil
	}
	return i
}

// configAt finds the file that a path means: a folder means the unit file in it.
func (c *calc) configAt(path, dir string, at *source.Range, summary string) (string, bool) {
	full := absPath(dir, path)
	if full == "" || path == "" {
		c.errorf(at, "unit/empty-path", summary, "The path is empty.")
		return "", false
	}
	if c.l.isDir(full) {
		name := c.l.unitFile(full)
		if name == "" {
			c.errorf(at, "unit/file-not-found", summary, "There is no %s in the folder %s.", c.l.env.configName(), full)
			return "", false
		}
		return name, true
	}
	if !c.l.exists(full) {
		c.errorf(at, "unit/file-not-found", summary, "There is no file %s. Relative paths count from %s.", full, dir)
		return "", false
	}
	return full, true
}

func (c *calc) includeBlock(e *ev, b *block) *included {
	path := c.headArg(e, b, "path")
	expose, strategy := c.headArg(e, b, "expose"), c.headArg(e, b, "merge_strategy")
	if c.stuck() || !known(path) {
		if a := b.attr("path"); a != nil && !c.stuck() {
			at := a.x.at()
			c.errorf(&at, "unit/include-path", "Invalid include path", "The path of an included file must be known and cannot be null.")
		}
		return nil
	}
	i := &included{label: b.label, bare: !b.labeled, at: b.at, mode: shallow, path: path.AsString()}
	i.expose = known(expose) && expose.True()
	if known(strategy) {
		switch strategy.AsString() {
		case "shallow", "":
		case "no_merge":
			i.mode = noMerge
		case "deep":
			i.mode = deep
		default:
			at := b.attr("merge_strategy").x.at()
			c.errorf(&at, "unit/merge-strategy", "Unknown merge strategy", "%q is no way of merging an included file. The ways are no_merge, shallow and deep.", strategy.AsString())
			return nil
		}
	}
	at := b.attr("path").x.at()
	full := absPath(e.dir, path.AsString())
	if path.AsString() == "" || !c.l.exists(full) || c.l.isDir(full) {
		c.errorf(&at, "unit/file-not-found", "Included file not found", "There is no file %s. Relative paths count from %s.", full, e.dir)
		return nil
	}
	f := c.l.file(full, languageTable().unit)
	c.readFile(full)
	c.add(f.ds)
	if f.root == nil {
		return nil
	}
	i.e = e.included(f, b.label, includeRole)
	return i
}
