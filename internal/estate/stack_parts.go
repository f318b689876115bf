package estate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// A StackPart is a unit or a stack of a stack file, where it was generated.
type StackPart struct {
	Name  string
	Dir   string
	Stack bool
	Parts []StackPart // of a stack
	At    source.Range
}

// stackParts reads what a stack file and those generated from it say.
func (e *Estate) stackParts(t *demand.Task, dir string, depth int) ([]StackPart, diag.List) {
	if depth > deepest {
		return nil, stackErr("Stacks lie too deep in each other", "More than %d stacks lie in each other at %s.", deepest, dir)
	}
	st, ds := e.loader.Stack(t, dir)
	if st == nil || ds.HasErrors() {
		return nil, ds
	}
	items, ds := st.Items(t)
	var out []StackPart
	for _, it := range items {
		p := StackPart{Name: it.Name, Dir: it.Dir, Stack: it.Kind == "stack", At: it.At}
		if p.Stack && isStack(it.Dir) {
			var more diag.List
			p.Parts, more = e.stackParts(t, it.Dir, depth+1)
			ds = append(ds, more...)
		}
		out = append(out, p)
	}
	return out, ds
}

// wrongStacks is what is wrong with stack files, for those who make nothing of them.
func (e *Estate) wrongStacks(ctx context.Context) diag.List {
	all := parallel.Map(len(e.Stacks), 0, func(i int) diag.List {
		t := e.task(ctx)
		st, ds := e.loader.Stack(t, filepath.Join(e.o.Root, filepath.FromSlash(e.Stacks[i])))
		if st != nil && !ds.HasErrors() {
			_, ds = st.Items(t)
		}
		return ds.Errors()
	})
	return slices.Concat(all...)
}

// withoutUnmade leaves out messages about dependencies that a stack file would have made
// if it were right, which was told.
func (e *Estate) withoutUnmade(u *Unit, ds diag.List) diag.List {
	if len(e.told.unmade) == 0 {
		return ds
	}
	return slices.DeleteFunc(ds, func(m *diag.Message) bool {
		return m.Code == "unit/dependency-not-found" && slices.ContainsFunc(u.edges, func(edge unit.Edge) bool {
			return strings.Contains(m.Detail, " "+edge.ID+" ") && e.belowUnmade(edge.ID)
		})
	})
}

// belowUnmade reports whether a path lies below a stack file of which not everything
// was made.
func (e *Estate) belowUnmade(path string) bool {
	for dir := range e.told.unmade {
		if strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

func isStack(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, unit.StackName))
	return err == nil && !info.IsDir()
}

// StackParts are the parts of all stacks below the root that belong to no other
// stack, by name. Two parts of one name are an error, since outputs could not tell
// them apart.
func (e *Estate) StackParts(ctx context.Context) ([]StackPart, diag.List) {
	t := e.task(ctx)
	var all [][]StackPart
	inner := map[string]bool{}
	var ds diag.List
	var mark func(parts []StackPart)
	mark = func(parts []StackPart) {
		for _, p := range parts {
			inner[p.Dir] = true
			mark(p.Parts)
		}
	}
	dirs := slices.Clone(e.Stacks)
	for _, name := range dirs {
		parts, more := e.stackParts(t, filepath.Join(e.o.Root, filepath.FromSlash(name)), 0)
		ds = append(ds, more...)
		mark(parts)
		all = append(all, parts)
	}
	var out []StackPart
	seen := map[string]*StackPart{}
	for i, parts := range all {
		if inner[filepath.Join(e.o.Root, filepath.FromSlash(dirs[i]))] {
			continue
		}
		for j := range parts {
			p := &parts[j]
			if first := seen[p.Name]; first != nil {
				ds = append(ds, stackErr("Several stacks with one name", "%q is a part of the stack at %s too, so that outputs could not be told apart. Run the command in the folder of one stack.", p.Name, first.At).Under(&p.At)...)
				continue
			}
			seen[p.Name] = p
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b StackPart) int { return strings.Compare(a.Name, b.Name) })
	return out, ds
}

// stackOutputs are the outputs of a stack as a dependency gives them: those of its
// units by name, those of stacks in it nested.
func (e *Estate) stackOutputs(t *demand.Task, dir string, at source.Range) (cty.Value, bool, diag.List) {
	parts, ds := e.stackParts(t, dir, 0)
	if ds.HasErrors() {
		return cty.DynamicVal, false, ds
	}
	v, some, more := e.partOutputs(t, parts, at)
	return v, some, append(ds, more...)
}

func (e *Estate) partOutputs(t *demand.Task, parts []StackPart, at source.Range) (v cty.Value, some bool, ds diag.List) {
	m := map[string]cty.Value{}
	for _, p := range parts {
		var v cty.Value
		var ok bool
		var more diag.List
		if p.Stack {
			v, ok, more = e.partOutputs(t, p.Parts, at)
		} else {
			v, ok, more = e.outputs(t, p.Dir, at)
		}
		ds = append(ds, more...)
		if ok {
			m[p.Name] = v
			some = true
		}
	}
	return cty.ObjectVal(m), some, ds
}

// stackUnits are the folders of the units of a stack, nil if a folder holds none.
func (e *Estate) stackUnits(t *demand.Task, dir string) []string {
	if !isStack(dir) {
		return nil
	}
	parts, _ := e.stackParts(t, dir, 0)
	var out []string
	var add func(parts []StackPart)
	add = func(parts []StackPart) {
		for _, p := range parts {
			if p.Stack {
				add(p.Parts)
			} else {
				out = append(out, p.Dir)
			}
		}
	}
	add(parts)
	return out
}
