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

// Sources configures replacements of the sources of units, and how sources are fetched.
//
// Override is the value of --source. If the command runs on one unit, Override replaces the
// source of that unit, even if the unit has none. If the command runs on several units, and for
// units whose outputs are read, Override is the package that contains the modules of all units.
// The module is then the directory after // in the unit's own source or, without one, the last
// element of the source's path.
type Sources struct {
	Override string
	Base     bool                 // Override is a package with the modules of all units
	Alone    func(id string) bool // reports whether the command runs on a unit, if Base is not set
	Map      map[string]string    // values of --source-map: replacements of addresses without the part after //
	// Fetch fetches the package of a remote source and returns its directory. It may be nil.
	Fetch func(ctx context.Context, src string) (dir string, ds diag.List)
}

// A Fetcher fetches each package once. After a failure, the next caller fetches it again. Its
// methods may be called concurrently.
type Fetcher struct {
	fetch func(ctx context.Context, src string) (dir string, ds diag.List)
	done  parallel.Cache[string, fetched]
}

type fetched struct {
	dir string
	ds  diag.List
}

// NewFetcher returns a Fetcher. fetch may be nil.
func NewFetcher(fetch func(ctx context.Context, src string) (dir string, ds diag.List)) *Fetcher {
	return &Fetcher{fetch: fetch}
}

// Can reports whether packages can be fetched.
func (f *Fetcher) Can() bool { return f.fetch != nil }

// Get fetches a package and returns its directory.
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

// A moduleSource is the source of a unit's module.
type moduleSource struct {
	text string        // "" if the module is in the unit's own directory
	at   *source.Range // nil if the unit has no source
}

// source returns the source of a unit's module after the replacements by flags.
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

// Source returns the source of a unit's module. It returns "" if the module is in the unit's own
// directory or if the source is unknown.
func (m *Maker) Source(u *unit.Unit, tf *unit.Terraform) string {
	src, _ := m.source(u, tf)
	return src.text
}

// of returns the source of a unit after Override. own is the unit's source, or "" for none.
func (s *Sources) of(u *unit.Unit, own string) string {
	switch {
	case s.Override == "":
		return own
	case own == "" || !s.Base && s.Alone(u.ID):
		return s.Override
	}
	return sourceBelow(s.Override, own)
}

// sourceBelow returns the source of the directory in the package base that corresponds to the
// source own. If base has a directory itself, it is returned unchanged.
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

// ReplaceSource replaces the address of a module's package according to --source-map. The address
// is the part before // and the query.
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

// packageOf returns the directory of a module's package, and the subdirectory of the module in
// it. pkg is "" if the package is not on this machine and fetch is false.
func (m *Maker) packageOf(ctx context.Context, u *unit.Unit, src moduleSource, fetch bool) (pkg, sub string, ds diag.List) {
	root, sub := unit.SplitSource(unit.Getter(src.text))
	if unit.LocalSource(root) {
		pkg = filepath.Clean(strings.TrimPrefix(root, "file://"))
		if !filepath.IsAbs(pkg) {
			pkg = filepath.Join(u.Dir, pkg)
		}
		pkg = m.s.OnDisk(pkg)
		if info, err := m.s.Read.Stat(filepath.Join(pkg, sub)); pkg != os.DevNull && (err != nil || !info.IsDir()) {
			return "", "", diag.Errorf(diag.CodeEstateModuleNotFound, src.at, "Module not found", "The source of the module, %q, leads to %s, which is not a directory.", src.text, filepath.Join(pkg, sub))
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
	if info, err := m.s.Read.Stat(filepath.Join(dir, sub)); err != nil || !info.IsDir() {
		return "", "", diag.Errorf(diag.CodeEstateModuleNotFound, src.at, "Module not found", "The package %q has no directory %q.", root, sub)
	}
	return dir, sub, nil
}

// CheckSource returns an error if the source of a unit's module is local and does not exist. It
// does not check remote sources.
func (m *Maker) CheckSource(ctx context.Context, u *unit.Unit, tf *unit.Terraform) diag.List {
	src, ds := m.source(u, tf)
	if ds.HasErrors() || src.text == "" {
		return nil
	}
	_, _, ds = m.packageOf(ctx, u, src, false)
	return ds
}
