// Package module builds the tree of module calls from installed modules.
//
// Main types: Tree and Node. The one rule: a directory is loaded once, even if several calls
// refer to it. Nodes therefore share their configuration and must not modify it.
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
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// MaxDepth is the maximum nesting depth of calls, so that a module that calls itself results in
// an error.
const MaxDepth = 500

// The types of the tree.
type (
	Node  = config.Node
	Tree  = config.Tree
	Loads = config.Loads
)

// Options configures Build.
type Options struct {
	Config    config.Options
	Manifest  map[string]Installed             // installed modules by call path ("a.b")
	Functions StaticFunctions                  // for early evaluation; nil means none
	Variables func(*config.Variable) cty.Value // values of root variables for early evaluation; cty.NilVal means the default
	Workspace string
	// Canonical converts a source address to the form in the manifest. versioned means that the
	// call has a version argument. nil only adds the default host to registry addresses.
	Canonical func(src string, versioned bool) string
	// Links resolves links in the name of a local module's directory; nil means that names are
	// unchanged. See ResolveLinks.
	Links func(dir string) string
	// Loads caches loaded directories for several trees of the same files with the same Config.
	// nil means that this tree has its own cache.
	Loads *Loads
	// KeyPrefix begins the manifest keys of all calls.
	KeyPrefix string
	// Change returns a replacement for a loaded module, which it must not modify. nil means no
	// replacement.
	Change func(path addr.Module, m *config.Module) *config.Module
}

// key returns the manifest key of a call.
func (o Options) key(path addr.Module) string {
	if o.KeyPrefix == "" {
		return path.Key()
	}
	return o.KeyPrefix + "." + path.Key()
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
	calls map[*config.Call]callFacts // facts that are the same for every node of the module
	links map[string]string          // directories with their links resolved
	asked bool                       // an expression needed more than its own text
	unset []string                   // variables of the root module without a value, that an expression needed
}

// callFacts are the evaluated source and version of a call.
type callFacts struct {
	source    string
	canonical string // in the form of the manifest
	versioned bool
	want      Constraint
}

// Build loads the root directory and every module that it calls.
func Build(ctx context.Context, dir string, o Options) (*Tree, diag.List) {
	b := &builder{o: o, root: dir, loads: o.Loads, calls: map[*config.Call]callFacts{}, links: map[string]string{}}
	if b.loads == nil {
		b.loads = &Loads{}
	}
	mod, first := b.loads.Load(dir, o.Config)
	ds := slices.Clone(first)
	root := &Node{Config: mod, Dir: dir, Calls: map[string]*Node{}}
	ds = append(ds, b.resolve(root)...)
	if o.Change != nil {
		root.Config = o.Change("", root.Config)
	}
	seen := map[*config.Module]bool{mod: true}
	ds = append(ds, b.children(ctx, root, 0, seen)...)
	ds = append(ds, providerKeys(root)...)
	return &Tree{Root: root, Constant: !b.asked}, append(ds, constInputs(root)...)
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
	if call.Source == nil {
		return nil, nil // decoding the block reported the missing argument
	}
	child := &Node{Path: n.Path.Child(call.Name), Call: call, Parent: n, Calls: map[string]*Node{}}
	says, ds := b.facts(child)
	if ds.HasErrors() {
		return nil, ds
	}
	at := call.Source.Expr.Range()
	if depth >= MaxDepth {
		return nil, diag.Errorf(diag.CodeModuleDepth, &at, "Module calls nest too deep", "The call %s nests more than %d modules deep. A module that calls itself never ends; remove one of the calls.", child.Path, MaxDepth)
	}
	child.Source = says.source
	if ds := b.locate(child, says, &at); ds.HasErrors() {
		return nil, ds
	}
	if ds := child.Endless(); len(ds) > 0 {
		return nil, ds
	}
	mod, more := b.loads.Load(child.Dir, b.o.Config)
	child.Config = mod
	unresolved := b.resolve(child)
	if b.o.Change != nil {
		child.Config = b.o.Change(child.Path, child.Config)
	}
	if !seen[mod] { // the messages of each directory once
		seen[mod] = true
		if config.Unread(more) {
			return nil, coded(unreadable, diag.Errorf(diag.CodeFilesRead, &at, "Unreadable module directory", "The directory %q, which this call names, does not exist or cannot be read.", child.Dir))
		}
		ds = append(ds, more...)
		ds = append(ds, onlyInRoot(mod, call)...)
	}
	return child, append(ds, unresolved...)
}

// resolve evaluates the arguments in required_providers of a node that have references.
func (b *builder) resolve(n *Node) (ds diag.List) {
	n.Config, ds = n.Config.ResolveProviders(func(provider, argument string, x hcl.Expression) (string, diag.List) {
		name := "required_providers." + provider + "." + argument
		if n.Path != "" {
			name = string(n.Path) + "." + name
		}
		v, ds := b.static(n, x, "provider "+argument, name)
		if ds.HasErrors() {
			return "", ds
		}
		if v.IsNull() || v.Type() != cty.String {
			at := x.Range()
			return "", diag.Errorf(diag.CodeConfigRequiredProvider, &at, "Invalid required_providers object", "The %s of a required provider must be a string.", argument)
		}
		return v.AsString(), nil
	})
	return ds
}

// onlyInRoot reports blocks that a called module must not have.
func onlyInRoot(m *config.Module, call *config.Call) diag.List {
	var ds diag.List
	if m.Backend != nil {
		ds = append(ds, diag.Warnf(diag.CodeModuleBackendIgnored, &m.Backend.At, "Backend configuration ignored", "Any selected backend applies to the entire configuration, so Terrace expects backend blocks only in the root module. This block is ignored.").Note(&call.At, "the module is called here")...)
	}
	return ds
}

// IsLocal reports whether a module source is a path relative to the calling module.
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

// normal adds the default registry host to a source address, as in modules.json.
func normal(src string) string {
	if strings.Count(strings.SplitN(src, "//", 2)[0], "/") == 2 && !strings.Contains(src, ":") {
		return addr.DefaultHost + "/" + src
	}
	return src
}

// The codes of errors about missing modules.
const (
	notInstalled = diag.CodeModuleNotInstalled
	outgrown     = diag.CodeModuleVersionChanged
	unreadable   = diag.CodeModuleUnreadable
)

// NotInstalled returns the error that a module must be installed first.
func NotInstalled() diag.List {
	return coded(notInstalled, diag.Errorf(diag.CodeModuleNotInstalled, nil, "Module not installed", "This module is not yet installed. Run \"terrace init\" to install all modules required by this configuration."))
}

// NeedsInstall reports whether an error means that modules must be installed.
func NeedsInstall(m *diag.Message) bool { return m.Code == notInstalled || m.Code == outgrown }

// Missing reports whether an error means that a called module is missing: not installed, or a
// directory that does not exist.
func Missing(m *diag.Message) bool { return NeedsInstall(m) || m.Code == unreadable }

func coded(code string, ds diag.List) diag.List {
	for _, m := range ds {
		m.Code = code
	}
	return ds
}

// locate finds the directory of a called module: relative to the caller, or as recorded in the
// manifest.
func (b *builder) locate(child *Node, says callFacts, at *source.Range) diag.List {
	if IsLocal(says.source) {
		child.Dir = b.local(joinDir(child.Parent.Dir, says.source))
		return nil
	}
	inst, ok := b.o.Manifest[b.o.key(child.Path)]
	if !ok || inst.Source != says.source && inst.Source != says.canonical && normal(inst.Source) != normal(says.source) {
		ds := NotInstalled()
		ds[0].At = at
		return ds
	}
	if says.versioned && !says.want.Allows(inst.Version) {
		at := child.Call.Version.Expr.Range()
		return coded(outgrown, diag.Errorf(diag.CodeModuleVersionChanged, &at, "Module version requirements have changed", "The version requirements have changed since this module was installed and the installed version (%s) is no longer acceptable. Run \"terrace init\" to install all modules required by this configuration.", inst.Version))
	}
	child.Dir, child.Version = inst.Dir, inst.Version
	if b.root != "." && b.o.KeyPrefix == "" && !filepath.IsAbs(child.Dir) {
		child.Dir = filepath.ToSlash(filepath.Join(b.root, child.Dir))
	}
	return nil
}

// local returns the name of a directory with its links resolved, as OpenTofu has it in
// path.module. The result is cached, since many calls refer to one directory.
func (b *builder) local(dir string) string {
	if b.o.Links == nil {
		return dir
	}
	name, ok := b.links[dir]
	if !ok {
		name = b.o.Links(dir)
		b.asked = b.asked || name != dir
		b.links[dir] = name
	}
	return name
}

// facts evaluates the source and version of a node's call. Most calls have literal arguments;
// these are evaluated once for all callers.
func (b *builder) facts(child *Node) (callFacts, diag.List) {
	call := child.Call
	if f, ok := b.calls[call]; ok {
		return f, nil
	}
	var f callFacts
	v, ds := b.static(child.Parent, call.Source.Expr, "source", argumentOf(child.Parent, call, "source"))
	if ds.HasErrors() {
		return f, ds
	}
	at := call.Source.Expr.Range()
	if v.IsNull() || v.Type() != cty.String {
		return f, diag.Errorf(diag.CodeModuleSource, &at, "Invalid module source", "The module source must be a string.")
	}
	f.source = v.AsString()
	if f.want, f.versioned, ds = b.version(child); ds.HasErrors() {
		return f, ds
	}
	if f.versioned && IsLocal(f.source) {
		return f, versionOfLocal(call.Version.Expr)
	}
	if !IsLocal(f.source) && (f.source == "." || f.source == ".." || !strings.ContainsAny(f.source, "/:")) {
		return f, diag.Errorf(diag.CodeModuleSource, &at, "Invalid module source address", "Unable to parse the module source address %q. A local path must begin with \"./\" or \"../\".", f.source)
	}
	f.canonical = f.source
	if b.o.Canonical != nil {
		f.canonical = b.o.Canonical(f.source, f.versioned)
	}
	if len(call.Source.Expr.Variables()) == 0 && (call.Version == nil || len(call.Version.Expr.Variables()) == 0) {
		b.calls[call] = f
	}
	return f, ds
}

func versionOfLocal(x hcl.Expression) diag.List {
	at := x.Range()
	return diag.Errorf(diag.CodeModuleRegistrySource, &at, "Invalid registry module source address", "Cannot apply a version constraint to a module at a relative local path.")
}
