package unit

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

func pathBetween(from, to string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	p, err := filepath.Rel(from, to)
	if err != nil {
		return "", fmt.Errorf("there is no path from %s to %s", from, to)
	}
	return filepath.ToSlash(p), nil
}

// find looks for a file or folder in the folders above dir.
func (k *call) find(dir string, args []string) (cty.Value, error) {
	name := k.c.l.env.configName()
	if len(args) > 0 {
		name = args[0]
	}
	if p := k.c.l.findUp(filepath.Dir(dir), name); p != "" {
		return cty.StringVal(p), nil
	}
	if len(args) > 1 {
		return cty.StringVal(args[1]), nil
	}
	return cty.NilVal, fmt.Errorf("there is no %s in any folder above %s", name, dir)
}

// findUp is the nearest name in dir or above, or "". Answers are kept for the
// loader's life, also negative ones.
func (l *Loader) findUp(dir, name string) string {
	return l.finds.Do([2]string{dir, name}, func() string {
		if p := filepath.Join(dir, name); l.exists(p) {
			return p
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		return l.findUp(up, name)
	})
}

// include is the folder of the included file that an argument names, or that is
// the only one; "" if there is none.
func (k *call) include(args []string) (string, error) {
	if k.inInclude() { // what is included is not known yet
		return "", nil
	}
	if len(args) == 0 && k.e.role == includeRole {
		return k.e.f.Dir, nil
	}
	h := k.c.fileImports(k.e.base())
	if k.c.stuck() {
		return "", errors.New("the included files are not known")
	}
	if len(args) == 0 {
		switch len(h.includes) {
		case 0:
			return "", nil
		case 1:
			return h.includes[0].e.f.Dir, nil
		}
		return "", errors.New("there are several include blocks, so the label of one must be given")
	}
	for _, i := range h.includes {
		if i.label == args[0] {
			return i.e.f.Dir, nil
		}
	}
	return "", fmt.Errorf("there is no include block labeled %q", args[0])
}

// inInclude tells whether the call stands in an include block.
func (k *call) inInclude() bool {
	if k.e.f.Root == nil {
		return false
	}
	return slices.ContainsFunc(k.e.f.Root.Of("include"), func(b *syntax.Block) bool {
		return slices.ContainsFunc(b.Attrs, func(a *syntax.Attr) bool { return a.Expr.At() == k.at })
	})
}

func (k *call) includePath(args []string, from bool) (cty.Value, error) {
	dir, err := k.include(args)
	if err != nil || dir == "" {
		return cty.StringVal("."), err
	}
	a, b := dir, k.e.dir
	if from {
		a, b = b, a
	}
	p, err := pathBetween(a, b, nil)
	return cty.StringVal(p), err
}

// importPath is the path between an import's folder and the leaf's (rule 17). In
// an included file it counts from that file's folder as well, so that one file
// can be included by some and imported by others.
func (k *call) importPath(args []string, from bool) (cty.Value, error) {
	dot := cty.StringVal(".")
	if len(args) == 0 && k.e.role == readRole {
		return dot, nil
	}
	if k.leafOnly() {
		return dot, nil
	}
	dir := k.e.f.Dir
	if len(args) > 0 || k.e.role != includeRole && k.e.base().role == leafRole {
		h := k.c.fileImports(k.e.base())
		if k.c.stuck() {
			return dot, errors.New("the imports are not known")
		}
		i, err := pickImport(h, args)
		if err != nil || i == nil {
			return dot, err
		}
		dir = i.e.f.Dir
	}
	a, b := dir, k.c.leaf.place()
	if from {
		a, b = b, a
	}
	p, err := pathBetween(a, b, nil)
	return cty.StringVal(p), err
}

func pickImport(h *fileImports, args []string) (*imported, error) {
	if len(args) > 0 {
		if i := h.importOf(args[0]); i != nil {
			return i, nil
		}
		return nil, fmt.Errorf("there is no import named %q", args[0])
	}
	switch len(h.imports) {
	case 0:
		return nil, nil
	case 1:
		return h.imports[0], nil
	}
	return nil, errors.New("there are several imports, so the name of one must be given")
}

// repo is the folder that holds .git, at or above dir.
func (l *Loader) repo(dir string) (string, error) {
	git := l.findUp(dir, ".git")
	if git == "" {
		return "", fmt.Errorf("%s is not in a git repository", dir)
	}
	return filepath.Dir(git), nil
}
