package unit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// place is an expression that calls functions of the unit language. It implements
// functions.CallSite.
type place struct {
	c  *evaluator
	e  *evaluation
	at source.Range // of the expression
}

// contextFunctions returns the functions that an expression calls. They depend on the range
// of the call, so each expression has its own.
func (c *evaluator) contextFunctions(e *evaluation, x *syntax.Expr) map[string]function.Function {
	p := &place{c: c, e: e, at: x.At()}
	out := make(map[string]function.Function, len(x.Calls))
	for _, name := range x.Calls {
		if f, ok := c.l.library.Function(name, p); ok {
			out[name] = f
		}
	}
	return out
}

func (p *place) At() source.Range   { return p.at }
func (p *place) Dir() string        { return p.e.dir }
func (p *place) FileDir() string    { return p.e.file().Dir }
func (p *place) Task() *demand.Task { return p.c.t }
func (p *place) Waiting() bool      { return p.c.needsLeaf }
func (p *place) Reads(path string)  { p.c.readFile(path) }

func (p *place) HandsIn(value, call string) {
	h := &handed{values: []string{value}, shown: p.c.l.named(call, p.at)}
	p.c.facts = p.c.facts.with(&facts{handed: []*handed{h}})
}

func (p *place) Leaf() (dir string, ok bool) {
	if p.c.leaf == nil {
		p.c.needsLeaf = true
		return "", false
	}
	return p.c.leaf.dir, true
}

func (p *place) Included(label ...string) (string, error) {
	if p.inInclude() { // the included file is not known yet
		return "", nil
	}
	if len(label) == 0 && p.e.role == includeRole {
		return p.e.file().Dir, nil
	}
	h := p.c.fileImports(p.e.base())
	if p.c.stuck() {
		return "", errors.New("the included files are not known")
	}
	if len(label) == 0 {
		switch len(h.includes) {
		case 0:
			return "", nil
		case 1:
			return h.includes[0].e.file().Dir, nil
		}
		return "", errors.New("there are several include blocks, so the label of one must be given")
	}
	for _, i := range h.includes {
		if i.label == label[0] {
			return i.e.file().Dir, nil
		}
	}
	return "", fmt.Errorf("there is no include block labeled %q", label[0])
}

// inInclude reports whether the expression is an argument of an include block.
func (p *place) inInclude() bool {
	if p.e.file().Root == nil {
		return false
	}
	return slices.ContainsFunc(p.e.file().Root.Of("include"), func(b *syntax.Block) bool {
		return slices.ContainsFunc(b.Attrs, func(a *syntax.Attr) bool { return a.Expr.At() == p.at })
	})
}

// Imported implements functions.CallSite. In an included file, it also uses that file's
// directory, so that one file can be both included and imported.
func (p *place) Imported(name ...string) (dir, unit string, err error) {
	if len(name) == 0 && p.e.role == readRole {
		return "", "", nil
	}
	if _, ok := p.Leaf(); !ok {
		return "", "", nil
	}
	dir = p.e.file().Dir
	if len(name) > 0 || p.e.role != includeRole && p.e.base().role == leafRole {
		h := p.c.fileImports(p.e.base())
		if p.c.stuck() {
			return "", "", errors.New("the imports are not known")
		}
		i, err := pickImport(h, name)
		if err != nil || i == nil {
			return "", "", err
		}
		dir = i.e.file().Dir
	}
	return dir, p.c.leaf.place(), nil
}

func pickImport(h *fileImports, name []string) (*imported, error) {
	if len(name) > 0 {
		if i := h.importOf(name[0]); i != nil {
			return i, nil
		}
		return nil, fmt.Errorf("there is no import named %q", name[0])
	}
	switch len(h.imports) {
	case 0:
		return nil, nil
	case 1:
		return h.imports[0], nil
	}
	return nil, errors.New("there are several imports, so the name of one must be given")
}

// WorkingDir returns "" while that directory is computed, because the computation may call
// it again.
func (p *place) WorkingDir() (string, error) {
	if p.c.leaf.placing {
		return "", nil
	}
	c := p.c.sub(p.c.leaf.beforePlaced(), p.c.full)
	fields := c.leafFields()
	src := c.textOf(fields, "terraform", "source")
	download := p.c.l.env.Request.DownloadDir
	if download == "" {
		download = c.textOf(fields, "download_dir")
	}
	p.c.facts = p.c.facts.with(c.facts)
	if c.failed {
		return "", c.ds.Err()
	}
	return p.c.leaf.runsIn(src, download), nil
}

// ReadConfig reads a whole file, for a call of read_terragrunt_config within another
// expression. try() can catch its errors.
func (p *place) ReadConfig(args []cty.Value) (cty.Value, error) {
	if len(args) > 2 {
		return cty.DynamicVal, fmt.Errorf("at most 2 arguments expected, not %d", len(args))
	}
	if !args[0].IsKnown() {
		return cty.DynamicVal, nil
	}
	c := p.c.sub(p.c.leaf, p.c.full)
	n, err := c.readFrom(p.e, args[0].AsString())
	if errors.Is(err, errNoFile) && len(args) == 2 {
		return args[1], nil
	}
	v := cty.DynamicVal
	if err == nil {
		v = n.value(c)
	}
	p.c.facts = p.c.facts.with(c.facts)
	p.c.needsLeaf = p.c.needsLeaf || c.needsLeaf
	if c.needsLeaf {
		return cty.DynamicVal, nil
	}
	p.c.needsOut = p.c.needsOut || c.needsOut
	if c.failed {
		return cty.DynamicVal, c.ds.Err()
	}
	p.c.add(c.ds)
	return v, err
}
