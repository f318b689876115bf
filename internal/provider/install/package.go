package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// A Package is an installed provider package.
type Package struct {
	Provider addr.Provider
	Version  versions.Version // zero for a development override
	Dir      string
	Override bool // whether it is from dev_overrides

	verify func(context.Context) (Program, diag.List)
}

// A Program is the program of a package.
type Program struct {
	Path string
	// Name is equal for equal programs. It is the hash of the package if that was verified,
	// and otherwise the path with symbolic links resolved.
	Name string
	// Hash is the verified hash of the package, or "" if the lock file has none for it.
	Hash lock.Hash
}

// Hashes caches the hashes of packages, so that a package that many directories link to is
// read once. The zero value is an empty cache without records. It may be used concurrently.
type Hashes struct {
	Records Records // hashes that earlier commands have computed

	known parallel.Cache[string, hashed]
}

type hashed struct {
	hash lock.Hash
	err  error
}

// dir returns the hash of a provider's package in a directory, for commands that install
// packages. It does not use the hashes of earlier commands.
func (h *Hashes) dir(ctx context.Context, dir string, p addr.Provider) (lock.Hash, error) {
	exe, err := executable(dir, p)
	if err != nil {
		return lock.HashDir(ctx, dir)
	}
	return h.of(ctx, dir, exe, true)
}

// of returns the hash of a package. It reads the package again if its program was replaced. With
// read, it does not use the records.
func (h *Hashes) of(ctx context.Context, dir, exe string, read bool) (lock.Hash, error) {
	real, err := filepath.EvalSymlinks(dir)
	info, statErr := os.Stat(exe)
	if h == nil || err != nil || statErr != nil {
		return lock.HashDir(ctx, dir)
	}
	key := fmt.Sprintf("%s\x00%d\x00%d", real, info.Size(), info.ModTime().UnixNano())
	if !read {
		if got, ok := h.known.Get(key); ok { // this process has read the package
			return got.hash, got.err
		}
		key += "\x00recorded"
	}
	got, err := h.known.Do(ctx, key, func() (hashed, bool) {
		var files []identity
		var began time.Time
		if h.Records.enabled() {
			files, began = identities(real), h.Records.Now()
		}
		if !read {
			if sum, ok := h.Records.find(real, files); ok {
				return hashed{sum, nil}, true
			}
		}
		sum, err := lock.HashDir(ctx, dir)
		if err == nil {
			h.Records.keep(real, files, sum, began)
		}
		return hashed{sum, err}, err == nil
	})
	if err != nil {
		return "", err
	}
	return got.hash, got.err
}

// Exe verifies the package against the lock file and returns the path of the plugin's
// program. The first call reads the whole package, so call it only for a provider that will
// be started. A failure is not cached. It may be called concurrently.
func (p Package) Exe(ctx context.Context) (string, diag.List) {
	prog, ds := p.verify(ctx)
	return prog.Path, ds
}

// Program is like Exe, and also returns the program's name.
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
		have, err := hashes.of(ctx, p.Dir, exe, false)
		if err != nil {
			return Program{}, diag.Errorf(diag.CodeProviderStart, nil, "Failed to load plugin", "The package of provider %s %s in %s cannot be read: %s.", p.Provider, p.Version, p.Dir, err)
		}
		if !slices.Contains(allowed, have) {
			return Program{}, diag.Errorf(diag.CodeProviderStart, nil, "Failed to load plugin", "The cached package for %s %s (in %s) does not match any of the checksums recorded in the dependency lock file. Run \"init\" to ensure that all providers are correctly installed.", p.Provider, p.Version, p.Dir)
		}
		prog.Name, prog.Hash = p.Provider.String()+" "+string(have), have
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

// knownHashes removes hashes of unsupported schemes.
func knownHashes(hs []lock.Hash) []lock.Hash {
	var out []lock.Hash
	for _, h := range hs {
		if s := h.Scheme(); s == "h1" || s == "zh" {
			out = append(out, h)
		}
	}
	return out
}

// executable returns the plugin's program in a package: terraform-provider-TYPE with any
// suffix. A name with exactly the type is preferred to one whose type only begins with it.
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
