package installer

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A call is one module call that is being installed.
type call struct {
	key    string
	node   *module.Node // the called module; its Config is set when it is loaded
	parent *call        // nil for calls in the root module
	depth  int
	at     source.Range // range of the source argument
	addr   fetch.Address
	want   module.Constraint
	vAt    source.Range // range of the version argument

	dir        string // relative to the root directory, as in the manifest
	version    string // selected version of a registry module
	packageDir string // directory of the package of a remote module
	reuse      bool   // the installed module is still suitable
	hash       lock.Hash
	ds         diag.List
}

func (c *call) failed() bool { return c.ds.HasErrors() }

// call evaluates a call's source and version and determines the directory of the module.
func (in *installer) call(p *module.Node, cfg *config.Call) (*call, diag.List) {
	if cfg.Source == nil {
		return nil, nil // reported when the block was decoded
	}
	c := &call{
		node: &module.Node{Path: p.Path.Child(cfg.Name), Call: cfg, Parent: p, Calls: map[string]*module.Node{}},
		at:   cfg.Source.Expr.Range(),
	}
	c.key = c.node.Path.Key()
	c.parent = in.calls[p]
	if c.parent != nil {
		c.depth = c.parent.depth + 1
	}
	if ds := in.address(c, p, cfg); ds.HasErrors() {
		return nil, ds
	}
	if c.depth >= module.MaxDepth {
		return nil, diag.Errorf(diag.CodeModuleDepth, &c.at, "Module calls nest too deep", "The call %s nests more than %d modules deep.", shortKey(c.key), module.MaxDepth)
	}
	if in.testRuns[p] {
		c.node.Parent = nil // a test run has its own tree, in which the module under test may be called
	}
	c.node.Source = c.addr.String()
	if c.addr.Kind == fetch.Local {
		from := "."
		if c.parent != nil {
			from = c.parent.dir
		}
		c.dir = module.ResolveLinks(nil, in.root, path.Join(from, c.addr.Path)) // as OpenTofu does
		c.node.Dir = c.dir
	} else {
		in.installed(c)
	}
	if ds := c.cycle(); ds != nil {
		return nil, ds
	}
	in.calls[c.node] = c
	return c, nil
}

func (in *installer) address(c *call, p *module.Node, cfg *config.Call) diag.List {
	src, ds := in.text(p, cfg)
	if ds.HasErrors() {
		return ds
	}
	hasVersion := false
	if cfg.Version != nil {
		c.vAt = cfg.Version.Expr.Range()
		if c.want, hasVersion, ds = module.CallVersion(c.node, in.o.Tree); ds.HasErrors() {
			return ds
		}
	}
	var err error
	if c.addr, err = fetch.Detect(src, hasVersion); err != nil {
		var ae *fetch.AddressError
		errors.As(err, &ae)
		ds := diag.Errorf(ae.Code, &c.at, ae.Summary, "%s", ae.Detail)
		if hasVersion {
			ds.Note(&c.vAt, "the version argument is here")
		}
		return ds
	}
	return nil
}

func (in *installer) text(p *module.Node, cfg *config.Call) (string, diag.List) {
	v, ds := module.StaticSource(p, cfg, in.o.Tree)
	if ds.HasErrors() {
		return "", ds
	}
	at := cfg.Source.Expr.Range()
	if v.IsNull() || v.Type() != cty.String {
		return "", diag.Errorf(diag.CodeModuleSource, &at, "Invalid module source", "The source of a module must be a string.")
	}
	return v.AsString(), nil
}

// installed checks whether the installed module is still suitable for the call.
func (in *installer) installed(c *call) {
	base := path.Join(filepath.ToSlash(in.relativeOf(in.data)), "modules", c.key)
	c.packageDir = in.absolute(base)
	c.dir = path.Join(base, c.addr.Subdir)
	rec, ok := in.old[c.key]
	_, parentReused := in.old[parentKey(c.key)]
	if !ok || in.o.Upgrade || rec.Source != c.addr.String() || c.parent != nil && c.parent.changed() && parentReused {
		c.node.Dir = c.dir
		return
	}
	if c.addr.Kind == fetch.Registry && !c.want.Allows(rec.Version) {
		c.node.Dir = c.dir
		return
	}
	if dir := path.Clean(rec.Dir); dir != base && !strings.HasPrefix(dir, base+"/") { // the manifest may come with a checkout
		c.node.Dir = c.dir
		return
	}
	if st, err := os.Stat(in.absolute(rec.Dir)); err != nil || !st.IsDir() {
		c.node.Dir = c.dir
		return
	}
	c.reuse, c.version, c.dir = true, rec.Version, rec.Dir
	c.node.Dir, c.node.Version = rec.Dir, rec.Version
}

// changed reports whether the module of a call is a remote module that is installed again in
// this run. Modules below it are then installed again, too.
func (c *call) changed() bool {
	for p := c; p != nil; p = p.parent {
		if p.addr.Kind != fetch.Local {
			return !p.reuse
		}
	}
	return false
}

func parentKey(key string) string {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)]
}

// cycle returns an error if the module of a call is one of its callers: the language has no way
// to end the recursion.
func (c *call) cycle() diag.List {
	same := func(p *call) bool {
		if c.addr.Kind == fetch.Local || p.addr.Kind == fetch.Local {
			return path.Clean(filepath.ToSlash(c.node.Dir)) == path.Clean(filepath.ToSlash(p.node.Dir))
		}
		return c.addr == p.addr && c.want.Text == p.want.Text
	}
	for p := c.parent; p != nil; p = p.parent {
		if same(p) {
			return c.node.CallsItself(p.node)
		}
	}
	if c.addr.Kind != fetch.Local {
		return nil
	}
	return c.node.Endless()
}

// absolute returns the path for opening a directory in the manifest.
func (in *installer) absolute(dir string) string {
	return folder(in.root).path(filepath.FromSlash(dir))
}
