package config

import (
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/source"
)

// A Node is one module in the tree of module calls.
type Node struct {
	Path    addr.Module
	Config  *Module
	Call    *Call // nil for the root
	Parent  *Node // nil for the root
	Calls   map[string]*Node
	Dir     string // as shown to users and in path.module
	Source  string // evaluated source address; "" for the root
	Version string // version of a registry module
}

// A Tree contains the modules of a root directory.
type Tree struct {
	Root *Node
	// Constant means that the tree only depends on the files and the manifest, and not on
	// values of variables, functions or the workspace.
	Constant bool
}

// Walk calls f for every node, parents first, siblings sorted by name.
func (t *Tree) Walk(f func(*Node)) { t.Root.walk(f) }

// Node returns the module of a module instance; nil if there is none.
func (t *Tree) Node(m addr.ModuleInstance) *Node {
	n := t.Root
	for _, s := range m.Steps() {
		if n = n.Calls[s.Name]; n == nil {
			return nil
		}
	}
	return n
}

// Walk calls f for the node and all nodes below it, parents first, siblings sorted by name.
func (n *Node) Walk(f func(*Node)) { n.walk(f) }

func (n *Node) walk(f func(*Node)) {
	f(n)
	for _, name := range slices.Sorted(maps.Keys(n.Calls)) {
		n.Calls[name].walk(f)
	}
}

// Loads caches loaded directories for trees that share them. The zero value is empty and
// usable. It is safe for concurrent use.
type Loads struct {
	cache parallel.Cache[string, loadedModule]
}

// Load returns the module of a directory, which is loaded once. The result is shared and must
// not be modified. If a directory or file could not be read, the next call reads it again.
func (l *Loads) Load(dir string, o Options) (*Module, diag.List) {
	r := l.cache.Local(dir, func() (loadedModule, bool) {
		m, ds := Load(dir, o)
		return loadedModule{m, ds}, !unreadable(ds)
	})
	return r.mod, r.ds
}

type loadedModule struct {
	mod *Module
	ds  diag.List
}

// Endless returns the error that a call refers to the directory of one of its callers. The
// language has no way to end such a recursion.
func (n *Node) Endless() diag.List {
	for p := n.Parent; p != nil; p = p.Parent {
		if path.Clean(filepath.ToSlash(p.Dir)) == path.Clean(filepath.ToSlash(n.Dir)) {
			return n.CallsItself(p)
		}
	}
	return nil
}

// CallsItself returns the error that a call leads to the module of one of its callers.
func (n *Node) CallsItself(caller *Node) diag.List {
	at := n.Call.Source.Expr.Range()
	if caller.Parent == nil {
		return diag.Errorf(diag.CodeModuleCycle, &at, "Module calls itself", "The module %s is the root module, so the calls would never end. Remove one of them.", n.Path)
	}
	ds := diag.Errorf(diag.CodeModuleCycle, &at, "Module calls itself", "The module %s has the same source as %s, which it is called by, so the calls would never end. Remove one of them.", n.Path, caller.Path)
	for q := n.Parent; q != caller.Parent; q = q.Parent {
		at := q.Call.Source.Expr.Range()
		ds.Note(&at, "%s is called here", q.Path)
	}
	return ds
}

// Files returns the files of every module without duplicates, for snapshots.
func (t *Tree) Files() []*source.File {
	var out []*source.File
	done := map[string]bool{}
	t.Walk(func(n *Node) {
		for _, f := range n.Config.Files {
			if sf := n.Config.Set.File(f.Path); sf != nil && !done[f.Path] {
				done[f.Path] = true
				out = append(out, sf)
			}
		}
	})
	return out
}

// RequiredProviders returns the providers that the configuration names explicitly.
func (t *Tree) RequiredProviders() map[addr.Provider]bool {
	out := map[addr.Provider]bool{}
	t.Walk(func(n *Node) {
		for _, rp := range n.Config.RequiredProviders {
			if !rp.Source.IsZero() {
				out[rp.Source] = true
			}
		}
	})
	return out
}
