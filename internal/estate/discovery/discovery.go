// Package discovery finds and reads the units of an estate, connects them with their
// dependencies, and selects those that filters match.
//
// Main types: Settings, Found and Unit. Package filter parses queries, package git compares
// commits, and package stacks reads stack files. The one rule: an error in a unit is recorded in
// the unit (Unit.Invalid), since it only matters to commands that use the unit.
package discovery

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// Settings configures discovery.
type Settings struct {
	Root        string // absolute path; units are searched below it
	DownloadDir string // value of --download-dir; not searched for units
	Command     string // name of the command, which exclude blocks refer to
	Destroy     bool   // the command destroys the objects of the units
	// Removals keeps units that were removed according to a git filter.
	Removals bool

	// Filters select units. None means all units.
	Filters []string
	// Affected returns the names of the units whose values differ from a revision, for filters. nil
	// means that such filters are an error.
	Affected func(ctx context.Context, base string) (map[string]bool, diag.List)
	// NoHidden skips hidden directories.
	NoHidden bool
	// Lenient keeps units that cannot be read, and accepts cycles. It is for commands that only
	// list units. Errors become Found.Warnings.
	Lenient bool
	// Whole continues after errors in units and dependencies, so that a check finds all of them.
	// The units must not be run then, but their states can be read.
	Whole bool
	// Expect is called with the number of bytes of memory that reading the found units takes, so
	// that the caller can tune the garbage collector. It may be nil.
	Expect func(bytes int64)
	// NamesAlone means that the caller only uses the names of units. Their files are not read,
	// unless filters need their content.
	NamesAlone bool
	// Generate generates the units of stack files before units are searched.
	Generate bool
	// OnlyStacks means that the filters select the stack files whose units are generated.
	OnlyStacks bool
	// Overlay, if not nil, receives the units of stack files, and Generate writes nothing to
	// disk.
	Overlay *stacks.Overlay
	// Generated is called for each generated unit and stack. It may be nil.
	Generated func(*unit.StackItem)
	// Empty is called for each stack file whose units and stacks are all disabled, or expand to
	// none. It may be nil.
	Empty func(path string)
	// DependentsIn is the directory in which filters search for dependents of units. "" means the
	// git repository that contains the root.
	DependentsIn string
	// Boundary is the directory that bounds graph terms of filters that name no boundary
	// themselves. "" means no boundary.
	Boundary string
	// ConfigName is the name of unit files; "" means terragrunt.hcl.
	ConfigName string
	// Compared means that the units are compared with those of another revision. What connects them is
	// computed when they are read, and the parsed files of a large estate are not kept.
	Compared bool
	// Files reads files for the whole process. nil means that each file is read anew.
	Files *readfile.Kept
}

// Tools contains the services that discovery uses.
type Tools struct {
	// Loaders returns the loaders of unit files below a directory. static evaluates with all
	// outputs unknown.
	Loaders func(root string) (loader, static *unit.Loader)
	Modules *workcopy.Maker
	Stacks  stacks.Settings // settings for generating stacks; Env is that of the root
	Git     git.Repo
	// Worktrees records the worktrees that are created.
	Worktrees *git.Worktrees
}

// Found contains the units of an estate.
type Found struct {
	Units []*Unit // sorted by name
	// Stacks contains the directories of stack files, as names.
	Stacks []string
	// Ungenerated contains errors about stacks whose units were not generated. A run over all
	// units that ignored them would omit units.
	Ungenerated diag.List
	// Warnings contains the warnings of reading the units.
	Warnings diag.List
	// General contains the errors about the estate as a whole, such as cycles. Settings.Whole continues after
	// them. The other errors are in Unit.Invalid, apart from those of exclude blocks. If Chosen is false, it may
	// be incomplete.
	General diag.List
	// Chosen means that the filters were applied, whatever the errors of the units. Otherwise
	// Units may contain too many or too few units.
	Chosen bool
	// Reported contains the messages that discovery reported.
	Reported Reported
	// Checkouts contains the commits whose files were read from worktrees.
	Checkouts git.Checkouts

	s          *Settings
	byID       map[string]*Unit
	incomplete map[string]bool // directories of stack files whose generation was incomplete
	elsewhere  bool            // the root is in a worktree
	modules    modules
}

// New returns an estate without units. Find and Add add some.
func New(s Settings) *Found {
	return &Found{s: &s, byID: map[string]*Unit{}, Reported: Reported{}}
}

// Add adds a unit that the caller has read.
func (f *Found) Add(in *unit.Unit) *Unit {
	u := &Unit{Unit: in, Name: f.Name(in.ID)}
	f.put(u)
	return u
}

func (f *Found) put(u *Unit) {
	f.Units = append(f.Units, u)
	f.byID[u.ID] = u
}

// Name returns the name of a unit: its ID relative to the root.
func (f *Found) Name(id string) string {
	rel, err := filepath.Rel(f.s.Root, id)
	if err != nil {
		return id
	}
	return filepath.ToSlash(rel)
}

// Root returns the directory below which units were searched: Settings.Root, or the same
// directory in a worktree.
func (f *Found) Root() string { return f.s.Root }

// ByID returns the unit with an ID, or nil.
func (f *Found) ByID(id string) *Unit { return f.byID[id] }

// StackDirs returns the directories of stack files.
func (f *Found) StackDirs() []string {
	out := make([]string, len(f.Stacks))
	for i, name := range f.Stacks {
		out[i] = filepath.Join(f.s.Root, filepath.FromSlash(name))
	}
	return out
}

// WorktreeDir returns the directory in a worktree from which the units were read. "" means that
// they were read from the repository's own directory.
func (f *Found) WorktreeDir() string {
	if !f.elsewhere {
		return ""
	}
	return f.s.Root
}

// GraphRoot returns the directory in which filters search for dependents of units. "" means the
// root of the estate.
func (f *Found) GraphRoot() string { return f.s.GraphRoot() }

// Files returns the unit files below a directory: files with the usual names and environment
// files.
func Files(root string) ([]string, diag.List) {
	found, ds := scan(&Settings{}, root)
	return found.units, ds
}

// finder is one call of Find.
type finder struct {
	*Found
	tools          Tools
	loader, static *unit.Loader
	changes        map[string]*git.Changes    // by the text in the brackets of filters
	affected       map[string]map[string]bool // names of units whose values differ, by the revision
	removed        map[string]*Unit           // Removed units by the directory that they were in
	// ahead is the number of units above which all data in early is computed when units are read, and
	// everything else is discarded. 0 means that it is not.
	ahead int
}

// Find finds, reads and sorts the units below the root. If it returns errors, f contains the
// units that could be read, and must not be run.
func (f *Found) Find(ctx context.Context, tools Tools) diag.List {
	in := &finder{Found: f, tools: tools}
	f.modules.maker = tools.Modules
	queries, ds := filter.Parse(f.s.Filters)
	if ds.HasErrors() {
		in.openLoaders()
		return ds
	}
	if ds = append(ds, f.s.bounds(queries)...); ds.HasErrors() {
		in.openLoaders()
		return ds
	}
	ds = append(ds, in.moveTo(ctx, queries)...)
	in.openLoaders()
	if ds.HasErrors() {
		return ds
	}
	f.s.bind(queries)
	return append(ds, in.find(ctx, queries)...)
}

// openLoaders creates the loaders once the root is known.
func (f *finder) openLoaders() {
	f.loader, f.static = f.tools.Loaders(f.s.Root)
	f.modules.static = f.static
}

func (f *finder) find(ctx context.Context, queries []filter.Query) (ds diag.List) {
	if f.s.Generate {
		var more diag.List
		f.incomplete, more = f.generate(ctx)
		f.General = append(f.General, more.Errors()...)
		if ds = append(ds, more...); ds.HasErrors() && !f.s.Whole {
			return ds
		}
	}
	_, span := telemetry.Start(ctx, "discovery_filesystem_walk")
	span.Text("working_dir", f.s.Root)
	found, more := scan(f.s, f.s.Root)
	if ended(span, more); more.HasErrors() {
		return append(ds, more...)
	}
	clashes := found.clashes(f.s.Lenient)
	f.General = append(f.General, clashes.Errors()...)
	ds = slices.Concat(ds, more, clashes)
	f.noteStacks(ctx, found)
	names := f.s.NamesAlone && !looksInside(queries)
	switch {
	case names:
		found.units = f.nameUnits(found.units)
	case len(queries) > 0 && !f.s.Lenient && !looksInside(queries):
		found.units = f.named(ctx, queries, found.units)
	}
	if f.s.Expect != nil && !names {
		f.s.Expect(int64(len(found.units)) * unitBytes)
	}
	if !names && len(queries) == 0 {
		switch {
		case f.s.Lenient:
			f.ahead = manyUnits
		case f.s.Compared:
			f.ahead = manyFiles
		}
	}
	if ds = append(ds, f.load(ctx, found.units, false)...); ds.HasErrors() && !f.s.Whole {
		return ds
	}
	if names {
		f.choose(ctx, queries)
		return ds
	}
	for _, step := range []func(context.Context, []filter.Query) diag.List{f.widen, f.readGit} {
		more = step(ctx, queries)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	}
	more = f.connect(ctx, queries)
	if f.s.Lenient {
		more = append(more, stacks.Check(ctx, f.loader, f.StackDirs())...).AsWarnings()
	}
	if ds = append(ds, more...); ds.HasErrors() && !f.s.Whole {
		return ds
	}
	all := f.Units
	f.choose(ctx, queries)
	more = f.exclude(ctx)
	if f.s.Lenient { // errors that prevent reading a unit were reported above
		more = slices.DeleteFunc(more.AsWarnings(), func(m *diag.Message) bool {
			return slices.ContainsFunc(ds, func(h *diag.Message) bool { return h.Summary == m.Summary && samePlace(h.At, m.At) })
		})
	}
	ds = f.setAside(ds, all)
	f.Warnings, f.Chosen = ds.Warnings(), true
	return append(slices.Clone(ds), more...)
}

// unitBytes is the estimated memory, in bytes, for one unit. It is a quarter of the memory that
// reading and evaluating a unit allocates, and twice the memory that it retains.
const unitBytes = 14 << 10

func samePlace(a, b *source.Range) bool { return a != nil && b != nil && *a == *b }

// ended ends a span and adds the messages of the step.
func ended(s *telemetry.Span, ds diag.List) {
	s.Messages(ds)
	s.End()
}

// noteStacks records the stack files, and the stack files without generated units.
func (f *finder) noteStacks(ctx context.Context, in finding) {
	for _, s := range in.stacks {
		f.Stacks = append(f.Stacks, f.Name(filepath.Dir(s)))
		dir := filepath.Dir(s) + string(filepath.Separator)
		i, _ := slices.BinarySearch(in.units, dir)
		if i < len(in.units) && strings.HasPrefix(in.units[i], dir) || f.incomplete[filepath.Dir(s)] || f.declaresNone(ctx, s) {
			continue
		}
		m := &diag.Message{
			Code: diag.CodeEstateStack, Summary: "Stack not generated",
			Detail: "The units of the stack file " + s + " were not generated. Leave --no-stack-generate out, or generate them with \"stack generate\" first.",
		}
		if f.s.Generate {
			m.Summary, m.Detail = "Empty stack", "The stack file "+s+" has no unit and no stack block."
		}
		f.Ungenerated = append(f.Ungenerated, m)
	}
}

// declaresNone reports whether all units and stacks of a stack file are disabled, or expand to
// none.
func (f *finder) declaresNone(ctx context.Context, path string) bool {
	t := f.loader.Task(ctx)
	st, ds := f.loader.Stack(t, path)
	if st == nil || ds.HasErrors() || !st.Declares(t) {
		return false
	}
	items, ds := st.Items(t)
	return len(items) == 0 && !ds.HasErrors()
}

// WithoutIncomplete removes errors about missing dependencies that an invalid stack file would
// have generated. The error in the stack file is reported elsewhere.
func (f *Found) WithoutIncomplete(ds diag.List) diag.List {
	if len(f.incomplete) == 0 {
		return ds
	}
	return slices.DeleteFunc(ds, func(m *diag.Message) bool {
		missing, ok := m.Extra.(unit.NotFound)
		return ok && f.belowIncomplete(missing.Path)
	})
}

// belowIncomplete reports whether a path is below the directory of a stack file whose generation
// was incomplete.
func (f *Found) belowIncomplete(path string) bool {
	for dir := range f.incomplete {
		if strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// generate generates the units of stack files.
func (f *finder) generate(ctx context.Context) (incomplete map[string]bool, ds diag.List) {
	return Generate(ctx, *f.s, f.tools.Stacks, f.loader.Sources())
}

// Generate generates the units of all stack files below the root of the settings. It adds the
// source text of messages to set. incomplete contains the directories of stack files whose
// generation was incomplete.
func Generate(ctx context.Context, s Settings, with stacks.Settings, set *source.Set) (incomplete map[string]bool, ds diag.List) {
	return stacks.Generate(ctx, with, set, func(level int) ([]string, diag.List) {
		found, _, ds := walk(&s, s.Root)
		if level == 0 && s.OnlyStacks && !ds.HasErrors() {
			return chosenStacks(&s, found.stacks)
		}
		return found.stacks, ds
	})
}

// chosenStacks returns the stack files that match the filters.
func chosenStacks(s *Settings, paths []string) ([]string, diag.List) {
	queries, ds := filter.Parse(s.Filters)
	f := &matching{f: &finder{Found: &Found{s: s}}}
	at := map[*item]string{}
	for _, p := range paths {
		it := &item{name: f.f.Name(filepath.Dir(p))}
		f.all = append(f.all, it)
		at[it] = p
	}
	for _, q := range queries {
		if slices.ContainsFunc(q.Terms, func(t filter.Term) bool { return t.Kind == filter.ByGit || t.Up > 0 || t.Down > 0 }) {
			ds = append(ds, filter.Invalid(q.Text, "stacks are chosen by name, path and type alone when they are generated")...)
		}
	}
	if ds.HasErrors() {
		return nil, ds
	}
	var out []string
	for it := range f.chosen(queries) {
		out = append(out, at[it])
	}
	slices.Sort(out)
	return out, nil
}
