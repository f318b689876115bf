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
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// Select returns the installed package of each required provider, for commands other than
// init. It reads no package; Package.Exe verifies one before it is started. Providers with
// a development override need neither a lock file entry nor an installation. Select uses
// only the options Config, WorkDir, DataDir, Platform and Hashes.
func Select(ctx context.Context, req Requirements, locked *lock.File, o Options) (map[addr.Provider]Package, diag.List) {
	want, ds := req.parse()
	if ds.HasErrors() {
		return nil, ds
	}
	out := make(map[addr.Provider]Package, len(want))
	overrides := o.overrides()
	locked, _ = translate(locked, want)
	var unlocked, missing []string
	changed := false
	for _, p := range sorted(want) {
		if dir, ok := overrides[p]; ok {
			pkg := newPackage(p, pkgNoVersion, o.path(dir), nil, o.Hashes)
			pkg.Override = true
			out[p] = pkg
			continue
		}
		entry := locked.Provider(p)
		if entry == nil {
			unlocked = append(unlocked, fmt.Sprintf("provider %s: required by this configuration but no version is selected", p))
			continue
		}
		if !want[p].Allows().Has(entry.Version) {
			changed = true
			unlocked = append(unlocked, fmt.Sprintf("provider %s: locked version selection %s doesn't match the updated version constraints %q", p, entry.Version, want[p]))
			continue
		}
		dir := packageDir(o.providersDir(), p, entry.Version, o.platform())
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			missing = append(missing, fmt.Sprintf("%s: there is no package for %s %s cached in %s", p, p, entry.Version, o.shown(o.providersDir())))
			continue
		}
		out[p] = newPackage(p, entry.Version, dir, entry.Hashes, o.Hashes)
	}
	if len(unlocked) > 0 {
		return out, append(ds, inconsistent(unlocked, len(locked.Providers) == 0 || !changed)...)
	}
	if len(missing) > 0 {
		ds = append(ds, diag.Errorf(diag.CodeProviderNotInstalled, nil, "Required plugins are not installed", "The installed provider plugins are not consistent with the packages selected in the dependency lock file:\n%s\n\nTo download the plugins required for this configuration, run:\n  terrace init", bullets(missing))...)
	}
	return out, ds
}

// Newest returns the newest of some versions of a provider that its requirements allow, or "". If a lock
// file selects a version, no other one is allowed.
func Newest(a addr.Provider, req Requirements, locked *lock.File, have []string) string {
	want, ds := req.parse()
	if ds.HasErrors() {
		return ""
	}
	allowed := want[a].Allows()
	if locked, _ = translate(locked, want); locked.Provider(a) != nil {
		allowed = versions.Only(locked.Provider(a).Version)
	}
	var list versions.List
	for _, text := range have {
		if v, err := versions.ParseVersion(text); err == nil {
			list = append(list, v)
		}
	}
	if v := list.NewestInSet(allowed); v != versions.Unspecified {
		return v.String()
	}
	return ""
}

func inconsistent(lines []string, firstTime bool) diag.List {
	what, cmd := "To update the locked dependency selections to match a changed configuration, run:", "terrace init -upgrade"
	if firstTime {
		what, cmd = "To make the initial dependency selections that will initialize the dependency lock file, run:", "terrace init"
	}
	return diag.Errorf(diag.CodeLockMismatch, nil, "Inconsistent dependency lock file", "The following dependency selections recorded in the lock file are inconsistent with the current configuration:\n%s\n\n%s\n  %s", bullets(lines), what, cmd)
}

func bullets(lines []string) string { return "  - " + strings.Join(lines, "\n  - ") }

// shown returns a path relative to the working directory if it is inside.
func (o *Options) shown(path string) string {
	if rel, err := filepath.Rel(o.WorkDir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func (o *Options) overrides() map[addr.Provider]string {
	if in := o.config().Installation; in != nil {
		return in.DevOverrides
	}
	return nil
}

// OverrideWarning returns the warning that every command prints while development overrides
// are in effect. It is empty if there are none.
func OverrideWarning(o Options, init bool) diag.List {
	overrides := o.overrides()
	if len(overrides) == 0 {
		return nil
	}
	var lines []string
	for p, dir := range overrides {
		lines = append(lines, " - "+p.Display()+" in "+dir)
	}
	slices.Sort(lines)
	after := "The behavior may therefore not match any released version of the provider and applying changes may cause the state to become incompatible with published releases."
	if init {
		after = "Skip \"init\" when using provider development overrides. It is not necessary and may error unexpectedly."
	}
	return diag.Warnf(diag.CodeProviderDevOverrides, nil, "Provider development overrides are in effect", "The following provider development overrides are set in the CLI configuration:\n%s\n\n%s", strings.Join(lines, "\n"), after)
}

// sorted returns the providers in the order of the lock file.
func sorted[V any](m map[addr.Provider]V) []addr.Provider {
	out := make([]addr.Provider, 0, len(m))
	for p := range m {
		out = append(out, p)
	}
	slices.SortFunc(out, lock.CompareProviders)
	return out
}

// translate replaces the default registry of Terraform by that of OpenTofu in lock file
// entries. It keeps the versions but not the checksums, because the packages are built
// separately. It returns the changed providers, for a warning.
func translate(locked *lock.File, want parsed) (*lock.File, []string) {
	out := locked.Clone()
	var changed []string
	for _, e := range out.Sorted() {
		if e.Addr.Host != addr.OtherDefaultHost {
			continue
		}
		ours := e.Addr
		ours.Host = addr.DefaultHost
		if _, explicit := want[e.Addr]; explicit || out.Provider(ours) != nil {
			continue
		}
		delete(out.Providers, e.Addr)
		changed = append(changed, fmt.Sprintf("%s => %s", e.Addr, ours))
		out.SetProvider(&lock.Provider{Addr: ours, Version: e.Version, Constraints: e.Constraints, At: e.At})
	}
	return out, changed
}
