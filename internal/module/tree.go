// Package module builds the tree of module calls from installed modules.
//
// Main types: Tree and Node. The one rule: a folder is loaded once, however
// many calls name it, so nodes share their configuration and must not change it.
package module

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/par"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// maxDepth bounds how deep calls nest, so that a module that calls itself ends in an error.
const maxDepth = 200

// A Node is one module in the tree of calls.
type Node struct {
	Path    addr.Module
	Config  *config.Module
	Call    *config.Call // nil for the root
	Parent  *Node        // nil for the root
	Calls   map[string]*Node
	Dir     string // as shown to users and as path.module has it
	Source  string // the source address as it was evaluated; "" for the root
	Version string // of a registry module
}

// A Tree is the modules of a root folder.
type Tree struct {
	Root *Node
}

// Walk calls f for every node, parents first, siblings by name.
func (t *Tree) Walk(f func(*Node)) { t.Root.walk(f) }

func (n *Node) walk(f func(*Node)) {
	f(n)
	for _, name := range slices.Sorted(maps.Keys(n.Calls)) {
		n.Calls[name].walk(f)
	}
}

// Options say how to build a tree.
type Options struct {
	Config    config.Options
	Manifest  map[string]Installed             // what is installed, by call path ("a.b")
	Functions StaticFunctions                  // for early evaluation; nil allows none
	Variables func(*config.Variable) cty.Value // values of root variables for early evaluation; cty.NilVal: the default
	Workspace string
	// Canonical writes a source address as the manifest has it; versioned says
	// whether the call has a version argument. Nil: only the host of registry
	// addresses is filled in.
	Canonical func(src string, versioned bool) string
	// Loads keeps the folders that were loaded, for several trees on the same
	// files with the same Config; nil: for this tree alone.
	Loads *Loads
}

// Loads are loaded folders, for trees that share them. The zero value is empty
// and ready; trees may be built on it concurrently.
type Loads struct{ cache par.Cache[string, loaded] }

func (l *Loads) load(dir string, o config.Options) loaded {
	return l.cache.Do(dir, func() loaded {
		m, ds := config.Load(dir, o)
		return loaded{m, ds}
	})
}

// Installed is one entry of modules.json.
type Installed struct {
	Source  string
	Version string
	Dir     string
}

type builder struct {
	o     Options
	root  string
	loads *Loads
	calls map[*config.Module]map[string]callFacts
}

type loaded struct {
	mod *config.Module
	ds  diag.List
}

// callFacts is what a call with constant source says, the same for every node of its module.
type callFacts struct {
	source string
	ok     bool
}

// Build loads the root folder and every module that it calls.
func Build(ctx context.Context, dir string, o Options) (*Tree, diag.List) {
	b := &builder{o: o, root: dir, loads: o.Loads, calls: map[*config.Module]map[string]callFacts{}}
	if b.loads == nil {
		b.loads = &Loads{}
	}
	first := b.loads.load(dir, o.Config)
	mod, ds := first.mod, slices.Clone(first.ds)
	root := &Node{Config: mod, Dir: dir, Calls: map[string]*Node{}}
	seen := map[*config.Module]bool{mod: true}
	ds = append(ds, b.children(ctx, root, 0, seen)...)
	return &Tree{root}, ds
}

func (b *builder) children(ctx context.Context, n *Node, depth int, seen map[*config.Module]bool) diag.List {
	var ds diag.List
	for _, name := range slices.Sorted(maps.Keys(n.Config.Calls)) {
		call := n.Config.Calls[name]
		child, more := b.child(n, call, depth, seen)
		ds = append(ds, more...)
		if child == nil {
			continue
		}
		n.Calls[name] = child
		if ctx.Err() == nil {
			ds = append(ds, b.children(ctx, child, depth+1, seen)...)
		}
	}
	return ds
}

func (b *builder) child(n *Node, call *config.Call, depth int, seen map[*config.Module]bool) (*Node, diag.List) {
	src, ds := b.source(n, call)
	if ds.HasErrors() || call.Source == nil {
		return nil, ds
	}
	at := call.Source.Expr.Range()
	if depth >= maxDepth {
		return nil, diag.Errorf(&at, "Module calls nest too deep", "The call %s nests more than %d modules deep. A module that calls itself never ends; break the circle.", n.Path.Child(call.Name), maxDepth)
	}
	child := &Node{Path: n.Path.Child(call.Name), Call: call, Parent: n, Calls: map[string]*Node{}, Source: src}
	switch inst, ok := b.o.Manifest[child.Path.Key()]; {
	case IsLocal(src):
		child.Dir = joinDir(n.Dir, src)
	case !ok || inst.Source != src && normal(inst.Source) != normal(src) && (b.o.Canonical == nil || b.o.Canonical(src, call.Version != nil) != inst.Source):
		return nil, diag.Errorf(&at, "Module not installed", "This module is not yet installed. Run \"terrace init\" to install all modules required by this configuration.")
	default:
		child.Dir, child.Version = inst.Dir, inst.Version
		if b.root != "." && !filepath.IsAbs(child.Dir) {
			child.Dir = filepath.ToSlash(filepath.Join(b.root, child.Dir))
		}
	}
	res := b.loads.load(child.Dir, b.o.Config)
	child.Config = res.mod
	if !seen[res.mod] { // each folder's messages once
		seen[res.mod] = true
		if !config.IsConfigDir(child.Dir, b.o.Config) {
			return nil, diag.Errorf(&at, "Unreadable module directory", "The folder %q, which this call names, does not exist or holds no configuration files.", child.Dir)
		}
		ds = append(ds, res.ds...)
		ds = append(ds, onlyInRoot(res.mod, call)...)
	}
	return child, ds
}

// onlyInRoot reports what a called module may not have.
func onlyInRoot(m *config.Module, call *config.Call) diag.List {
	var ds diag.List
	if m.Backend != nil {
		ds = append(ds, diag.Warnf(&m.Backend.At, "Backend configuration ignored", "Any selected backend applies to the entire configuration, so Terrace expects backend blocks only in the root module. This block is ignored.").Note(&call.At, "the module is called here")...)
	}
	for _, im := range m.Imports {
		ds = append(ds, diag.Errorf(&im.At, "Invalid import configuration", "An import block was found in a called module. Import blocks are only allowed in the root module.").Note(&call.At, "the module is called here")...)
	}
	return ds
}

// IsLocal reports whether a module source is a folder beside the calling module.
func IsLocal(src string) bool {
	for _, p := range []string{"./", "../", `.\`, `..\`} {
		if strings.HasPrefix(src, p) {
			return true
		}
	}
	return false
}

func joinDir(dir, src string) string {
	return filepath.ToSlash(filepath.Join(dir, strings.ReplaceAll(src, `\`, "/")))
}

// normal writes a source address with the default registry host, as modules.json has it.
func normal(src string) string {
	if strings.Count(strings.SplitN(src, "//", 2)[0], "/") == 2 && !strings.Contains(src, ":") {
		return addr.DefaultHost + "/" + src
	}
	return src
}

// source is a call's source address. Most are literal and need no scope.
func (b *builder) source(n *Node, call *config.Call) (string, diag.List) {
	if call.Source == nil {
		return "", nil // the missing argument was reported when the block was read
	}
	facts := b.calls[n.Config]
	if facts == nil {
		facts = map[string]callFacts{}
		b.calls[n.Config] = facts
	}
	if f, ok := facts[call.Name]; ok && f.ok {
		return f.source, nil
	}
	v, ds := b.static(n, call.Source.Expr, "source")
	if ds.HasErrors() {
		return "", ds
	}
	at := call.Source.Expr.Range()
	if v.IsNull() || v.Type() != cty.String {
		return "", diag.Errorf(&at, "Invalid module source", "The module source must be a string.")
	}
	src := v.AsString()
	if len(call.Source.Expr.Variables()) == 0 {
		facts[call.Name] = callFacts{src, true}
	}
	if call.Version != nil && IsLocal(src) {
		return "", versionOfLocal(call.Version.Expr)
	}
	if !IsLocal(src) && (src == "." || src == ".." || !strings.ContainsAny(src, "/:")) {
		return "", diag.Errorf(&at, "Invalid module source address", "Unable to parse the module source address %q. A local path must begin with \"./\" or \"../\".", src)
	}
	return src, nil
}

func versionOfLocal(x hcl.Expression) diag.List {
	at := x.Range()
	return diag.Errorf(&at, "Invalid registry module source address", "Cannot apply a version constraint to a module at a relative local path.")
}

// Files lists the files of every module once, for snapshots.
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
