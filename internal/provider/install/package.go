package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// A Package is a provider package that is ready to be started.
type Package struct {
	Provider addr.Provider
	Version  versions.Version // zero for a development override
	Dir      string
	Override bool // whether dev_overrides names it

	verify func(context.Context) (Program, diag.List)
}

// A Program is the program of a package.
type Program struct {
	Path string
	// Name is the same for programs that are the same: what the package's contents
	// hash to where they were verified, else the path with its links resolved.
	Name string
}

// Hashes remembers what packages hash to, so that one that many folders link to is
// read once. The zero Hashes is empty and ready; it may be used concurrently.
type Hashes struct {
	known parallel.Cache[string, hashed]
}

type hashed struct {
	hash lock.Hash
	err  error
}

// dir is the hash of the package of a provider in a folder.
func (h *Hashes) dir(ctx context.Context, dir string, p addr.Provider) (lock.Hash, error) {
	exe, err := executable(dir, p)
	if err != nil {
		return lock.HashDir(ctx, dir)
	}
	return h.of(ctx, dir, exe)
}

// of is the hash of a package. A package whose program was replaced is read anew.
func (h *Hashes) of(ctx context.Context, dir, exe string) (lock.Hash, error) {
	key, err := filepath.EvalSymlinks(dir)
	info, statErr := os.Stat(exe)
	if h == nil || err != nil || statErr != nil {
		return lock.HashDir(ctx, dir)
	}
	key = fmt.Sprintf("%s\x00%d\x00%d", key, info.Size(), info.ModTime().UnixNano())
	got, err := h.known.Do(ctx, key, func() (hashed, bool) {
		sum, err := lock.HashDir(ctx, dir)
		return hashed{sum, err}, err == nil
	})
	if err != nil {
		return "", err
	}
	return got.hash, got.err
}

// Exe verifies the package against the lock file and returns the path of the plugin's
// program. It reads the whole package the first time, so call it only for a provider that is
// to be started. A failure is not kept. It may be called concurrently.
func (p Package) Exe(ctx context.Context) (string, diag.List) {
	prog, ds := p.verify(ctx)
	return prog.Path, ds
}

// Program is Exe with the program's name.
func (p Package) Program(ctx context.Context) (Program, diag.List) { return p.verify(ctx) }

// checked is the result of verifying a package.
type checked struct {
	prog Program
	ds   diag.List
}

func newPackage(p addr.Provider, v versions.Version, dir string, allowed []lock.Hash, hashes *Hashes) Package {
	out := Package{Provider: p, Version: v, Dir: dir}
	var verified parallel.Cache[struct{}, checked]
	out.verify = func(ctx context.Context) (Program, diag.List) {
		got, err := verified.Do(ctx, struct{}{}, func() (checked, bool) {
			prog, ds := verify(ctx, out, allowed, hashes)
			return checked{prog, ds}, !ds.HasErrors()
		})
		if err != nil {
			return Program{}, diag.Errorf(diag.CodeProviderStart, nil, "Failed to load plugin", "The package of provider %s %s in %s was not read: %s.", p, v, dir, err)
		}
		return got.prog, got.ds
	}
	return out
}

func verify(ctx context.Context, p Package, allowed []lock.Hash, hashes *Hashes) (Program, diag.List) {
	exe, exeErr := executable(p.Dir, p.Provider)
	prog := Program{Path: exe, Name: exe}
	allowed = knownHashes(allowed)
	if len(allowed) > 0 {
		have, err := hashes.of(ctx, p.Dir, exe)
		if err != nil {
			return Program{}, diag.Errorf(diag.CodeProviderStart, nil, "Failed to load plugin", "The package of provider %s %s in %s cannot be read: %s.", p.Provider, p.Version, p.Dir, err)
		}
		if !slices.Contains(allowed, have) {
			return Program{}, diag.Errorf(diag.CodeProviderStart, nil, "Failed to load plugin", "The cached package for %s %s (in %s) does not match any of the checksums recorded in the dependency lock file. Run \"init\" to ensure that all providers are correctly installed.", p.Provider, p.Version, p.Dir)
		}
		prog.Name = p.Provider.String() + " " + string(have)
	}
	if exeErr != nil {
		return Program{}, diag.Errorf(diag.CodeProviderStart, nil, "Failed to load plugin", "Provider %s cannot be started: %s.", p.Provider, exeErr)
	}
	if len(allowed) == 0 {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			prog.Name = real
		}
	}
	return prog, nil
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
		return "", fmt.Errorf("could not find executable file starting with %s", prefix)
	}
	return second, nil
}
