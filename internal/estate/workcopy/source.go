package workcopy

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// Sources say what comes in the place of the sources of units, and who fetches them.
//
// Override is what --source gives. For the unit that a command is about alone it is the
// source as it stands, also where the unit has none of its own. For several units, and for
// those that the one reads outputs of, it is where the modules of all lie: the folder that
// the unit's own source names behind its //, or its last name, is looked for in it.
type Sources struct {
	Override string
	Base     bool                 // Override is where the modules of all units lie
	Alone    func(id string) bool // whether the command is about a unit, where Base is not set
	Map      map[string]string    // of --source-map: what replaces an address, before the //
	// Fetch brings the package of a source that is not local onto this machine. May be nil.
	Fetch func(ctx context.Context, src string) (dir string, ds diag.List)
}

// A Fetcher fetches each package once. A package that could not be fetched is fetched again
// for the next caller. Its methods may be called concurrently.
type Fetcher struct {
	fetch func(ctx context.Context, src string) (dir string, ds diag.List)
	done  parallel.Cache[string, fetched]
}

type fetched struct {
	dir string
	ds  diag.List
}

// NewFetcher makes a Fetcher; fetch may be nil.
func NewFetcher(fetch func(ctx context.Context, src string) (dir string, ds diag.List)) *Fetcher {
	return &Fetcher{fetch: fetch}
}

// Can reports whether anything can be fetched.
func (f *Fetcher) Can() bool { return f.fetch != nil }

// Get brings a package here.
func (f *Fetcher) Get(ctx context.Context, src string) (dir string, ds diag.List) {
	got, err := f.done.Do(ctx, src, func() (fetched, bool) {
		dir, ds := f.fetch(ctx, src)
		return fetched{dir, ds}, !ds.HasErrors()
	})
	if err != nil {
		return "", diag.Errorf(diag.CodeModuleFetch, nil, "Failed to fetch the module", "The run was interrupted while another unit fetched the same module: %s.", err)
	}
	return got.dir, got.ds
}

// A moduleSource is where a unit says that its module is.
type moduleSource struct {
	text string        // "" if the unit's own folder holds the module
	at   *source.Range // nil if the unit does not say
}

// source is the source of a unit's module, as flags change it.
func (m *Maker) source(u *unit.Unit, tf *unit.Terraform) (src moduleSource, ds diag.List) {
	if tf != nil && tf.Source != nil {
		src.at = tf.Source.At
		v, _ := tf.Source.Value.UnmarkDeep()
		switch {
		case !v.IsKnown():
			ds := diag.Errorf(plan.UnknownCode, src.at, "Module source is not known", "The source of the module must be known before anything runs.")
			return src, ds
		case v.IsNull():
		case v.Type() != cty.String:
			return src, diag.Errorf(diag.CodeUnitModuleSource, src.at, "Invalid module source", "The source of the module must be a string.")
		default:
			src.text = v.AsString()
		}
	}
	src.text = m.s.Sources.of(u, ReplaceSource(src.text, m.s.Sources.Map))
	return src, nil
}

// Source is the source of a unit's module, "" if the unit's own folder holds it or it is
// not known.
func (m *Maker) Source(u *unit.Unit, tf *unit.Terraform) string {
	src, _ := m.source(u, tf)
	return src.text
}

// of is the source of a unit as Override has it; own is the unit's, "" for none.
func (s *Sources) of(u *unit.Unit, own string) string {
	switch {
	case s.Override == "":
		return own
	case own == "" || !s.Base && s.Alone(u.ID):
		return s.Override
	}
	return sourceBelow(s.Override, own)
}

// sourceBelow is the folder in a base that a source means. A base that names a folder
// itself is taken as it is.
func sourceBelow(base, own string) string {
	root, sub := unit.SplitSource(unit.Getter(own))
	if _, has := unit.SplitSource(base); has != "" {
		return base
	}
	if sub == "" {
		address, _, _ := strings.Cut(root, "?")
		sub = strings.TrimSuffix(path.Base(filepath.ToSlash(address)), ".git")
	}
	if sub == "." || sub == ".." || sub == "/" {
		return base
	}
	address, query, has := strings.Cut(base, "?")
	if has {
		query = "?" + query
	}
	return address + "//" + sub + query
}

// ReplaceSource replaces the address of a module's package as --source-map says: what
// stands before the // and the query.
func ReplaceSource(src string, by map[string]string) string {
	if len(by) == 0 || src == "" {
		return src
	}
	root, sub := unit.SplitSource(src)
	address, query, has := strings.Cut(root, "?")
	to, ok := by[address]
	if !ok {
		return src
	}
	if sub != "" {
		to += "//" + sub
	}
	if has && !unit.LocalSource(by[address]) {
		to += "?" + query
	}
	return to
}

// packageOf finds the folder of a module's package; "" if it is not on this machine and
// may not be fetched.
func (m *Maker) packageOf(ctx context.Context, u *unit.Unit, src moduleSource, fetch bool) (pkg, sub string, ds diag.List) {
	root, sub := unit.SplitSource(unit.Getter(src.text))
	if unit.LocalSource(root) {
		pkg = filepath.Clean(strings.TrimPrefix(root, "file://"))
		if !filepath.IsAbs(pkg) {
			pkg = filepath.Join(u.Dir, pkg)
		}
		pkg = m.s.OnDisk(pkg)
		if info, err := os.Stat(filepath.Join(pkg, sub)); pkg != os.DevNull && (err != nil || !info.IsDir()) {
			return "", "", diag.Errorf(diag.CodeEstateModuleNotFound, src.at, "Module not found", "The source of the module, %q, leads to %s, which is not a folder.", src.text, filepath.Join(pkg, sub))
		}
		return pkg, sub, nil
	}
	switch {
	case !fetch:
		return "", "", nil
	case !m.fetcher.Can():
		return "", "", diag.Errorf(diag.CodeModuleFetch, src.at, "Module cannot be fetched", "The source %q is not local, and this program fetches no modules.", src.text)
	}
	dir, ds := m.fetcher.Get(ctx, root)
	if ds.HasErrors() {
		return "", "", slices.Clone(ds).Under(src.at)
	}
	if info, err := os.Stat(filepath.Join(dir, sub)); err != nil || !info.IsDir() {
		return "", "", diag.Errorf(diag.CodeEstateModuleNotFound, src.at, "Module not found", "The package %q has no folder %q.", root, sub)
	}
	return dir, sub, nil
}

// CheckSource is the error that the source of a unit's module leads nowhere on this
// machine. Nothing is said of one that would have to be fetched.
func (m *Maker) CheckSource(ctx context.Context, u *unit.Unit, tf *unit.Terraform) diag.List {
	src, ds := m.source(u, tf)
	if ds.HasErrors() || src.text == "" {
		return nil
	}
	_, _, ds = m.packageOf(ctx, u, src, false)
	return ds
}
