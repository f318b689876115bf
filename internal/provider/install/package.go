package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lock"
)

// A Package is a provider package that is ready to be started.
type Package struct {
	Provider addr.Provider
	Version  versions.Version // zero for a development override
	Dir      string
	Override bool // whether dev_overrides names it

	verify func(context.Context) (string, diag.List)
}

// Exe verifies the package against the lock file, once however often it is
// called, and returns the path of the plugin's program. It reads the whole
// package, so call it only for a provider that is to be started. It may be called
// concurrently.
func (p Package) Exe(ctx context.Context) (string, diag.List) { return p.verify(ctx) }

func newPackage(p addr.Provider, v versions.Version, dir string, allowed []lock.Hash) Package {
	out := Package{Provider: p, Version: v, Dir: dir}
	var once sync.Mutex
	var exe string
	var ds diag.List
	done := false
	out.verify = func(ctx context.Context) (string, diag.List) {
		once.Lock()
		defer once.Unlock()
		if done {
			return exe, ds
		}
		exe, ds = verify(ctx, out, allowed)
		done = ctx.Err() == nil
		return exe, ds
	}
	return out
}

func verify(ctx context.Context, p Package, allowed []lock.Hash) (string, diag.List) {
	allowed = knownHashes(allowed)
	if len(allowed) > 0 {
		have, err := lock.HashDir(ctx, p.Dir)
		if err != nil {
			return "", diag.Errorf(nil, "Failed to load plugin", "The package of provider %s %s in %s cannot be read: %s.", p.Provider, p.Version, p.Dir, err)
		}
		if !slices.Contains(allowed, have) {
			return "", diag.Errorf(nil, "Failed to load plugin", "The cached package for %s %s (in %s) does not match any of the checksums recorded in the dependency lock file. Run \"init\" to ensure that all providers are correctly installed.", p.Provider, p.Version, p.Dir)
		}
	}
	exe, err := executable(p.Dir, p.Provider)
	if err != nil {
		return "", diag.Errorf(nil, "Failed to load plugin", "Provider %s cannot be started: %s.", p.Provider, err)
	}
	return exe, nil
}

// knownHashes leaves out hashes of schemes that nothing can be checked against.
func knownHashes(hs []lock.Hash) []lock.Hash {
	var out []lock.Hash
	for _, h := range hs {
		if s := h.Scheme(); s == "h1" || s == "zh" {
			out = append(out, h)
		}
	}
	return out
}

// executable finds the plugin's program in a package: terraform-provider-TYPE
// with whatever follows. One that has the type as a whole is preferred to one
// of which it is only the beginning.
func executable(dir string, p addr.Provider) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("could not read package directory: %w", err)
	}
	prefix := "terraform-provider-" + p.Type
	second := ""
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if rest == "" || rest[0] == '_' || rest == ".exe" {
			return path, nil
		}
		if second == "" {
			second = path
		}
	}
	if second == "" {
		return "", fmt.Errorf("could not find executable file starting with %s in %s", prefix, dir)
	}
	return second, nil
}
