// Package discovery finds the units of an estate below a folder, reads them, connects
// them with what they depend on, and chooses those that filters ask for.
//
// Main types: Settings, Found and Unit. Queries are read by package filter, commits by
// package git, stack files by package stacks. The one rule: what is wrong with a unit is
// noted with it (Unit.Invalid), since it concerns those alone who work with that unit.
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

// Settings say which units are looked for, and how.
type Settings struct {
	Root        string // absolute; units are looked for below it
	DownloadDir string // of --download-dir, which holds no units
	Command     string // that the units are for; exclude blocks ask for it
	Destroy     bool   // the command destroys what the units manage
	// Removals keeps units that filters by git found removed.
	Removals bool

	// Filters choose among what is found; none means all of it.
	Filters []string
	// NoHidden leaves out units in hidden folders.
	NoHidden bool
	// Lenient keeps units that cannot be read, and takes cycles, for commands that
	// only list what there is. What is wrong becomes Found.Warnings.
	Lenient bool
	// Whole goes on where units cannot be read or connected, so that a check finds what
	// else is wrong. The units must not be run then; states can be read.
	Whole bool
	// Expect is called with how many bytes of memory it takes to read the units that were
	// found, one after the other, without collecting garbage too often. May be nil.
	Expect func(bytes int64)
	// NamesAlone says that only the names of units are wanted: their files are not
	// read, unless filters ask for what is in them.
	NamesAlone bool
	// Generate makes the units of stack files first.
	Generate bool
	// OnlyStacks says that the filters choose which stack files are generated from.
	OnlyStacks bool
	// Overlay, if not nil, gets what stack files stand for, and Generate writes nothing.
	Overlay *stacks.Overlay
	// Generated is called for each unit and stack that is made. May be nil.
	Generated func(*unit.StackItem)
	// DependentsIn is the folder in which filters look for units that need others; ""
	// means the git repository that the root lies in.
	DependentsIn string
	// Boundary is the folder that filters do not leave on their way to units that need
	// others or are needed by them, if they name none. "" means none.
	Boundary string
	// ConfigName is the name of unit files; "" means terragrunt.hcl.
	ConfigName string
	// Files reads files for the whole process; nil: each is read anew.
	Files *readfile.Kept
}

// Tools are what finding units takes besides files.
type Tools struct {
	// Loaders make the loaders of unit files below a folder. To static all outputs are
	// unknown.
	Loaders func(root string) (loader, static *unit.Loader)
	Modules *workcopy.Maker
	Stacks  stacks.Settings // what stacks are generated with; Env is that of the root
	Git     git.Repo
	// Worktrees notes the worktrees that are made.
	Worktrees *git.Worktrees
}

// Found is the units of an estate in order.
type Found struct {
	Units []*Unit // by name
	// Stacks are the folders of stack files, as names.
	Stacks []string
	// Ungenerated are errors about stacks whose units were not generated: without
	// them a run over everything would leave something out.
	Ungenerated diag.List
	// Warnings came up when the units were read.
	Warnings diag.List
	// Chosen says that Units are those that the filters ask for, whatever is wrong
	// with them. Without it some may be missing or too many.
	Chosen bool
	// Reported is what was reported while they were found.
	Reported Reported
	// Checkouts are the commits in which units were read.
	Checkouts git.Checkouts

	s          *Settings
	byID       map[string]*Unit
	incomplete map[string]bool // the folders of stack files of which not everything was made
	elsewhere  bool            // the root lies in a worktree
	modules    modules
}

// New is an estate of no units yet. Find or Add give it some.
func New(s Settings) *Found {
	return &Found{s: &s, byID: map[string]*Unit{}, Reported: Reported{}}
}

// Add adds a unit that was read by itself.
func (f *Found) Add(in *unit.Unit) *Unit {
	u := &Unit{Unit: in, Name: f.Name(in.ID)}
	f.put(u)
	return u
}

func (f *Found) put(u *Unit) {
	f.Units = append(f.Units, u)
	f.byID[u.ID] = u
}

// Name is how a unit is called: its ID as seen from the root.
func (f *Found) Name(id string) string {
	rel, err := filepath.Rel(f.s.Root, id)
	if err != nil {
		return id
	}
	return filepath.ToSlash(rel)
}

// Root is the folder that units were looked for below: that of the settings, or the same
// one in a worktree.
func (f *Found) Root() string { return f.s.Root }

// ByID is the unit of an ID, nil if there is none.
func (f *Found) ByID(id string) *Unit { return f.byID[id] }

// StackDirs are the folders of stack files.
func (f *Found) StackDirs() []string {
	out := make([]string, len(f.Stacks))
	for i, name := range f.Stacks {
		out[i] = filepath.Join(f.s.Root, filepath.FromSlash(name))
	}
	return out
}

// WorktreeDir is the folder of a worktree that the units were read in; "" if that is what
// is checked out.
func (f *Found) WorktreeDir() string {
	if !f.elsewhere {
		return ""
	}
	return f.s.Root
}

// GraphRoot is the folder in which filters look for units that need others; "" if
// that is the root of the estate.
func (f *Found) GraphRoot() string { return f.s.GraphRoot() }

// Files lists the unit files below a folder: those of the usual names and environment
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
	changes        map[string]*git.Changes // by what stands in the brackets of filters
	// ahead says that all there is to list of units is asked for when they are read,
	// where there are many.
	ahead bool
}

// Find finds and reads the units below the root, and puts them in order. With errors it
// holds what could be read, and must not be run.
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

// openLoaders makes the loaders, now that the root is known.
func (f *finder) openLoaders() {
	f.loader, f.static = f.tools.Loaders(f.s.Root)
	f.modules.static = f.static
}

func (f *finder) find(ctx context.Context, queries []filter.Query) (ds diag.List) {
	if f.s.Generate {
		var more diag.List
		f.incomplete, more = f.generate(ctx)
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
	ds = slices.Concat(ds, more, found.clashes(f.s.Lenient))
	f.noteStacks(found)
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
	f.ahead = f.s.Lenient && !names && len(queries) == 0
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
	if f.s.Lenient { // what keeps a unit from being read was reported above
		more = slices.DeleteFunc(more.AsWarnings(), func(m *diag.Message) bool {
			return slices.ContainsFunc(ds, func(h *diag.Message) bool { return h.Summary == m.Summary && samePlace(h.At, m.At) })
		})
	}
	ds = f.setAside(ds, all)
	f.Warnings, f.Chosen = ds.Warnings(), true
	return append(slices.Clone(ds), more...)
}

// unitBytes is a quarter of what is allocated for a unit whose files are read and evaluated,
// and twice what stays of it.
const unitBytes = 14 << 10

func samePlace(a, b *source.Range) bool { return a != nil && b != nil && *a == *b }

// ended ends the span of something that reported messages.
func ended(s *telemetry.Span, ds diag.List) {
	s.Messages(ds)
	s.End()
}

// noteStacks notes the stack files, and which of them nothing was generated from.
func (f *finder) noteStacks(in finding) {
	for _, s := range in.stacks {
		f.Stacks = append(f.Stacks, f.Name(filepath.Dir(s)))
		dir := filepath.Dir(s) + string(filepath.Separator)
		i, _ := slices.BinarySearch(in.units, dir)
		if i < len(in.units) && strings.HasPrefix(in.units[i], dir) || f.incomplete[filepath.Dir(s)] {
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

// WithoutIncomplete leaves out messages about dependencies that a stack file would have made
// if it were right, which was reported.
func (f *Found) WithoutIncomplete(ds diag.List) diag.List {
	if len(f.incomplete) == 0 {
		return ds
	}
	return slices.DeleteFunc(ds, func(m *diag.Message) bool {
		path, ok := m.Extra.(unit.NotFound)
		return ok && f.belowIncomplete(string(path))
	})
}

// belowIncomplete reports whether a path lies below a stack file of which not everything
// was made.
func (f *Found) belowIncomplete(path string) bool {
	for dir := range f.incomplete {
		if strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// generate makes the units of stack files.
func (f *finder) generate(ctx context.Context) (incomplete map[string]bool, ds diag.List) {
	return Generate(ctx, *f.s, f.tools.Stacks, f.loader.Sources())
}

// Generate makes the units of all stack files below the root of the settings. The text
// that messages are about is added to set. incomplete are the folders of stack files of
// which not everything was made.
func Generate(ctx context.Context, s Settings, with stacks.Settings, set *source.Set) (incomplete map[string]bool, ds diag.List) {
	return stacks.Generate(ctx, with, set, func(level int) ([]string, diag.List) {
		found, _, ds := walk(&s, s.Root)
		if level == 0 && s.OnlyStacks && !ds.HasErrors() {
			return chosenStacks(&s, found.stacks)
		}
		return found.stacks, ds
	})
}

// chosenStacks are the stack files that the filters leave.
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
