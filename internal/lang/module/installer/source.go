package installer

import (
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/net/fetch"
)

// Source downloads the module with a source address, as for a call, and returns its directory,
// which must only be read. For a registry module it uses the newest release. A local path is
// relative to root.
func Source(ctx context.Context, root, src string, o Options) (string, diag.List) {
	a, err := fetch.Detect(src, false)
	if err != nil {
		return "", diag.Errorf(diag.CodeModuleSource, nil, "Invalid module source address", "%s", err)
	}
	if a.Kind == fetch.Local {
		return filepath.Join(root, filepath.FromSlash(a.Path)), nil
	}
	in := &installer{o: o, root: root, pins: newPins(o), calls: map[*module.Node]*call{}}
	c := &call{key: "root", addr: a}
	if in.pick(ctx, c); c.failed() {
		return "", noPlace(c.ds)
	}
	pkg, err := o.Packages.Get(ctx, in.request(c, false))
	if err != nil {
		return "", noPlace(in.failed(c, err))
	}
	sub, err := expandSubdir(pkg.Dir, filepath.ToSlash(filepath.Join(pkg.Subdir, a.Subdir)))
	if err != nil {
		return "", diag.Errorf(diag.CodeModuleFetch, nil, "Failed to download module", "The module %q cannot be used: %s.", src, err)
	}
	return filepath.Join(pkg.Dir, filepath.FromSlash(sub)), nil
}

// noPlace removes source ranges, since there is no call.
func noPlace(ds diag.List) diag.List {
	for _, m := range ds {
		m.At = nil
	}
	return ds
}
