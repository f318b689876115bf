package stacks

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// A Part is a unit or a stack of a stack file, with the directory in which it is generated.
type Part struct {
	Name  string
	Key   addr.Key // of an instance of a block with an expansion; the zero Key without one
	Dir   string
	Stack bool
	Parts []Part // parts of a stack
	At    source.Range
}

// Address returns the name of the part, with the key of an instance.
func (p *Part) Address() string { return p.Name + p.Key.String() }

// parts returns the parts of the stack file in dir, and of the stacks generated from it.
func parts(t *demand.Task, l *unit.Loader, dir string, depth int) ([]Part, diag.List) {
	if depth > deepest {
		return nil, Invalid("Stacks lie too deep in each other", "More than %d stacks lie in each other at %s.", deepest, dir)
	}
	st, ds := l.Stack(t, dir)
	if st == nil || ds.HasErrors() {
		return nil, ds
	}
	items, ds := st.Items(t)
	var out []Part
	for _, it := range items {
		p := Part{Name: it.Name, Key: it.Key, Dir: it.Dir, Stack: it.Kind == "stack", At: it.At}
		if p.Stack && Is(l, it.Dir) {
			var more diag.List
			p.Parts, more = parts(t, l, it.Dir, depth+1)
			ds = append(ds, more...)
		}
		out = append(out, p)
	}
	return out, ds
}

// Parts returns the parts of the stack file in a directory, and of the stacks generated from it.
func Parts(t *demand.Task, l *unit.Loader, dir string) ([]Part, diag.List) {
	return parts(t, l, dir, 0)
}

// Is reports whether a directory contains a stack file.
func Is(l *unit.Loader, dir string) bool { return l.IsFile(filepath.Join(dir, unit.StackName)) }

// All returns the parts of the stacks in dirs, sorted by name, without stacks that are part of
// another one in dirs. Two parts with the same name are an error, because their outputs could not
// be distinguished.
func All(t *demand.Task, l *unit.Loader, dirs []string) ([]Part, diag.List) {
	var all [][]Part
	inner := map[string]bool{}
	var ds diag.List
	var mark func([]Part)
	mark = func(list []Part) {
		for _, p := range list {
			inner[p.Dir] = true
			mark(p.Parts)
		}
	}
	for _, dir := range dirs {
		list, more := parts(t, l, dir, 0)
		ds = append(ds, more...)
		mark(list)
		all = append(all, list)
	}
	var out []Part
	seen := map[string]*Part{}
	for i, list := range all {
		if inner[dirs[i]] {
			continue
		}
		for j := range list {
			p := &list[j]
			if first := seen[p.Address()]; first != nil {
				ds = append(ds, Invalid("Several stacks with one name", "%q is a part of the stack at %s too, so their outputs could not be distinguished. Run the command in the directory of one stack.", p.Address(), first.At).Under(&p.At)...)
				continue
			}
			seen[p.Address()] = p
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Part) int { return strings.Compare(a.Address(), b.Address()) })
	return out, ds
}

// Units returns the directories of the units of a stack. It returns nil if dir does not contain a
// stack file.
func Units(t *demand.Task, l *unit.Loader, dir string) []string {
	if !Is(l, dir) {
		return nil
	}
	list, _ := parts(t, l, dir, 0)
	var out []string
	var add func([]Part)
	add = func(list []Part) {
		for _, p := range list {
			if p.Stack {
				add(p.Parts)
			} else {
				out = append(out, p.Dir)
			}
		}
	}
	add(list)
	return out
}

// Check returns the errors in the stack files of directories, without generating anything.
func Check(ctx context.Context, l *unit.Loader, dirs []string) diag.List {
	all := parallel.Map(len(dirs), 0, func(i int) diag.List {
		t := l.Task(ctx)
		st, ds := l.Stack(t, dirs[i])
		if st != nil && !ds.HasErrors() {
			_, ds = st.Items(t)
		}
		return ds.Errors()
	})
	return slices.Concat(all...)
}
