package unit

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// fileImports are the imports and includes of a file.
type fileImports struct {
	imports  []*imported
	includes []*included
	auto     *evaluation // the evaluation of the autoinclude file, or nil
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
	e    *evaluation
	mode mode
}

type included struct {
	label  string
	bare   bool
	at     source.Range
	e      *evaluation
	mode   mode
	expose bool
	path   string // as written in the file
}

func (h *fileImports) importOf(name string) *imported {
	for _, i := range h.imports {
		if i.name == name {
			return i
		}
	}
	return nil
}

// fileImports reads the imports and includes of a file, before anything else in it is read.
func (c *evaluator) fileImports(e *evaluation) *fileImports {
	r := c.cellOf(e, syntax.ImportsPart)
	if r.h == nil {
		return &fileImports{}
	}
	return r.h
}

func (c *evaluator) buildImports(e *evaluation) *fileImports {
	h := &fileImports{}
	if e.role == valuesRole {
		return h
	}
	root := e.file().Root
	imps, incs := root.Of("import"), root.Of("include")
	if !c.l.lenient {
		c.checkImports(e, imps, incs)
	}
	for _, b := range imps {
		one := c.leniently()
		if i := one.importBlock(e, b); i != nil {
			h.imports = append(h.imports, i)
		}
		c.takeOver(one)
	}
	for _, b := range incs {
		one := c.leniently()
		if i := one.includeBlock(e, b); i != nil {
			h.includes = append(h.includes, i)
		}
		c.takeOver(one)
	}
	if e.role == leafRole {
		path := filepath.Join(e.dir, syntax.AutoIncludeName)
		if c.l.disk.Exists(path) {
			c.readFile(path)
			f := c.l.file(path, syntax.Language().Auto)
			c.add(f.Diags)
			if f.Root != nil {
				h.auto = e.included(f, "", autoRole)
			}
		}
	}
	return h
}

// leniently returns the computation for one import or include. For a lenient loader this is
// a separate one, so that its failure does not affect the others.
func (c *evaluator) leniently() *evaluator {
	if !c.l.lenient {
		return c
	}
	return c.sub(c.leaf, c.full)
}

// takeOver merges the result of the computation that leniently returned, without its
// errors.
func (c *evaluator) takeOver(one *evaluator) {
	if one != c {
		one.failed, one.ds = false, nil
		c.merge(one)
	}
}

// checkImports checks which blocks may occur together.
func (c *evaluator) checkImports(e *evaluation, imps, incs []*syntax.Block) {
	if len(imps) > 0 && e.role == includeRole {
		c.errorf(&imps[0].At, diag.CodeUnitImportInIncluded, "Import in an included file",
			"This file is included by %s. An included file is evaluated as a part of the file that includes it, so it cannot import others. Move the import to the including file, or import this file instead of including it.", e.child.file().Path)
	}
	if len(imps) > 0 && len(incs) > 0 {
		at, other := incs[0].At, imps[0].At
		if at.Start.Byte < other.Start.Byte {
			at, other = other, at
		}
		c.errorf(&at, diag.CodeUnitImportAndInclude, "Import and include in one file",
			"A file either imports or includes others, not both; the other kind stands at %s. Turn the include blocks into import blocks.", other)
	}
	if e.role == includeRole && len(incs) > 0 {
		c.errorf(&incs[0].At, diag.CodeUnitIncludeLevels, "Too many levels of inclusion",
			"This file is included by %s, and an included file cannot include others. Use import blocks, which can be chained.", e.child.file().Path)
	}
	bare := 0
	for _, b := range incs {
		if !b.Labeled {
			if bare++; bare > 1 {
				c.errorf(&b.At, diag.CodeUnitBareInclude, "Several include blocks without label",
					"Only one include block can be without a label. Give each of them a name.")
			}
		}
	}
	for _, b := range imps {
		if !hclsyntax.ValidIdentifier(b.Label) {
			c.errorf(&b.LabelAt, diag.CodeUnitImportName, "Invalid import name",
				"The name of an import must be an identifier: letters, digits, underscores and dashes, not beginning with a digit.")
		}
	}
}

// needsNothingLater checks that an argument of an import or include block does not read
// anything that is evaluated after imports.
func (c *evaluator) needsNothingLater(b *syntax.Block, a *syntax.Attr) bool {
	ok := true
	a.Expr.EachRef(func(ref hcl.Traversal) {
		if r, isRoot := rootNamed(ref.RootName()); ok && isRoot && !r.early && r.only != stackFiles {
			at := ref.SourceRange()
			ok = false
			c.errorf(&at, diag.CodeUnitEarlyReference, "Reference too early",
				"The %s block reads %s, but %ss are read first, before anything else in the file. Their arguments may only use functions and values.", b.Spec.Name, syntax.RefText(ref), b.Spec.Name)
		}
	})
	return ok
}

// importArg evaluates an argument of an import or include block.
func (c *evaluator) importArg(e *evaluation, b *syntax.Block, name string) cty.Value {
	a := b.Attr(name)
	if a == nil {
		spec := b.Spec.Arg(name)
		if spec.Required {
			c.missingArg(b.At, name)
		}
		return cty.NullVal(spec.Ty)
	}
	if !c.needsNothingLater(b, a) {
		return cty.UnknownVal(b.Spec.Arg(name).Ty)
	}
	one := c.sub(c.leaf, c.full)
	v := one.convert(one.eval(e, a.Expr), b.Spec.Arg(name).Ty, name, a.Expr.At())
	if !one.stuck() {
		c.redact(&exprNode{e: e, x: a.Expr}, v, one.facts)
	}
	c.merge(one)
	v, _ = v.Unmark()
	return v
}

func (c *evaluator) missingArg(at source.Range, name string) {
	c.errorf(&at, diag.CodeUnitMissingArgument, "Missing required argument", "The argument %q is required, but no definition was found.", name)
}

func (c *evaluator) importBlock(e *evaluation, b *syntax.Block) *imported {
	path := c.importArg(e, b, "config_path")
	merge, deepMerge := c.importArg(e, b, "merge"), c.importArg(e, b, "deep_merge")
	if c.stuck() || !syntax.Known(path) {
		if a := b.Attr("config_path"); a != nil && !c.stuck() {
			at := a.Expr.At()
			c.errorf(&at, diag.CodeUnitImportPath, "Invalid import path", "The path of an imported file must be known and cannot be null.")
		}
		return nil
	}
	i := &imported{name: b.Label, at: b.At}
	isTrue := func(v cty.Value) bool { return syntax.Known(v) && v.True() }
	switch {
	case isTrue(merge) && isTrue(deepMerge):
		c.errorf(&b.At, diag.CodeUnitImportModes, "Two ways of merging", "An import can have merge or deep_merge, not both.")
		return nil
	case isTrue(merge):
		i.mode = shallow
	case isTrue(deepMerge):
		i.mode = deep
	}
	at := b.Attr("config_path").Expr.At()
	full, ok := c.configAt(path.AsString(), e.file().Dir, &at, "Imported file not found")
	if !ok {
		return nil
	}
	if filepath.Base(full) == syntax.StackName {
		c.errorf(&at, diag.CodeUnitImportStack, "Import of a stack file", "%s is a stack file, which holds nothing that could be imported.", full)
		return nil
	}
	i.e = c.l.shared(full, importRole)
	c.readFile(i.e.file().Path)
	c.add(i.e.file().Diags)
	if i.e.file().Root == nil {
		return nil
	}
	return i
}

// configAt returns the file at a path. For a directory, it is the unit file in it.
func (c *evaluator) configAt(path, dir string, at *source.Range, summary string) (string, bool) {
	full := functions.AbsPath(dir, path)
	if full == "" || path == "" {
		c.errorf(at, diag.CodeUnitEmptyPath, summary, "The path is empty.")
		return "", false
	}
	if c.l.disk.IsDir(full) {
		name := c.l.unitFile(full)
		if name == "" {
			c.errorf(at, diag.CodeUnitFileNotFound, summary, "There is no %s in the directory %s.", c.l.env.configName(), full)
			return "", false
		}
		return name, true
	}
	if !c.l.disk.Exists(full) {
		c.errorf(at, diag.CodeUnitFileNotFound, summary, "There is no file %s. Relative paths count from %s.", full, dir)
		return "", false
	}
	return full, true
}

func (c *evaluator) includeBlock(e *evaluation, b *syntax.Block) *included {
	path := c.importArg(e, b, "path")
	expose, strategy := c.importArg(e, b, "expose"), c.importArg(e, b, "merge_strategy")
	if c.stuck() || !syntax.Known(path) {
		if a := b.Attr("path"); a != nil && !c.stuck() {
			at := a.Expr.At()
			c.errorf(&at, diag.CodeUnitIncludePath, "Invalid include path", "The path of an included file must be known and cannot be null.")
		}
		return nil
	}
	i := &included{label: b.Label, bare: !b.Labeled, at: b.At, mode: shallow, path: path.AsString()}
	i.expose = syntax.Known(expose) && expose.True()
	if syntax.Known(strategy) {
		switch strategy.AsString() {
		case "shallow", "":
		case "no_merge":
			i.mode = noMerge
		case "deep":
			i.mode = deep
		default:
			at := b.Attr("merge_strategy").Expr.At()
			c.errorf(&at, diag.CodeUnitMergeStrategy, "Unknown merge strategy", "%s is not a merge strategy of included files. The strategies are no_merge, shallow and deep.", c.quoted(&exprNode{e: e, x: b.Attr("merge_strategy").Expr}, strategy.AsString()))
			return nil
		}
	}
	at := b.Attr("path").Expr.At()
	full := functions.AbsPath(e.dir, path.AsString())
	if path.AsString() == "" || !c.l.disk.Exists(full) || c.l.disk.IsDir(full) {
		c.errorf(&at, diag.CodeUnitFileNotFound, "Included file not found", "There is no file %s. Relative paths count from %s.", full, e.dir)
		return nil
	}
	f := c.l.file(full, syntax.Language().Unit)
	c.readFile(full)
	c.add(f.Diags)
	if f.Root == nil {
		return nil
	}
	i.e = e.included(f, b.Label, includeRole)
	return i
}
