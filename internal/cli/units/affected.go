package units

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/revision"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// Revisions opens the revisions that words name. The caller closes them. checkout is that of
// revision.Open, and must be set if programs run.
func Revisions(ctx context.Context, c *command.Call, trees *estate.Worktrees, dir string, words []string, checkout bool) (*revision.Pair, diag.List) {
	repo := git.Repo{Dir: dir, Environ: c.Env, Exec: c.Run}
	pair, err := revision.Open(ctx, repo, trees, dir, words, checkout)
	if err != nil {
		return nil, diag.Errorf(diag.CodeCLIRevision, nil, "Invalid revision", "The revisions cannot be compared: %s.", diag.Reason(err))
	}
	return pair, nil
}

// ShownIn returns a function that returns the name of a file of a revision as it is shown by a command
// in the directory dir.
func ShownIn(dir string, r *revision.Revision) func(file string) string {
	return func(file string) string {
		if filepath.IsAbs(file) {
			file = sys.RelativeTo(dir, r.Rename(file))
		}
		return filepath.ToSlash(file)
	}
}

// A Warn receives the warnings about a revision, and the text of the files for messages. unit is the name of the
// unit to whose module they belong; "" means none.
type Warn func(r *revision.Revision, unit string, set *source.Set, ds diag.List)

// A Comparison is the result of a comparison of two revisions of an estate.
type Comparison struct {
	Units []*affected.Unit // those that differ, sorted by name
	// NotCompared contains the names of the units that have errors in one of the revisions, sorted.
	NotCompared []string
	// Base and Head contain the errors of these units. Those of the base that are also in the head are only there.
	Base, Head Located
}

// Located contains messages, and the files to which they refer.
type Located struct {
	Files    *source.Set
	Messages diag.List
}

// CompareRevisions compares the units of two revisions by value. The errors are those that prevent any comparison;
// the set contains the text of their files. It runs programs with o.Machine.Run. warn may be nil.
func CompareRevisions(ctx context.Context, c *command.Call, o estate.Options, pair *revision.Pair, warn Warn) (*Comparison, *source.Set, diag.List) {
	base := compared{r: affected.Revision{OutlineOptions: estate.OutlineOptions{Rename: pair.Base.Rename, Show: ShownIn(c.Dir, pair.Base)}}, of: pair.Base, dir: pair.Base.Dir, overlay: &stacks.Overlay{}, files: pair.Base.Files}
	head := compared{r: affected.Revision{OutlineOptions: estate.OutlineOptions{Rename: pair.Head.Rename, Show: ShownIn(c.Dir, pair.Head)}}, of: pair.Head, dir: pair.Head.Dir, overlay: &stacks.Overlay{}, files: pair.Head.Files}
	head.r.Schemas = KeptSchemas(c, pair.Head.Rename)
	if paths, resolve, ok := readfile.Modified(pair.Base.Patch, pair.Head.Patch); ok && base.dir == head.dir {
		head.since(paths, resolve, &base, o.Host)
	}
	return compare(ctx, c, o, warn, base, head)
}

// KeptSchemas returns the schemas that earlier commands have kept for the providers that are installed
// in the working directories of units. rename returns the directory of a unit in the working tree. The
// result is nil if there are none.
func KeptSchemas(c *command.Call, rename func(dir string) string) estate.ProviderSchemas {
	plugins, ds := c.Directory.Plugins()
	if ds.HasErrors() {
		return nil
	}
	return func(ctx context.Context, dir string, required map[addr.Provider][]config.Constraint) func(addr.Provider) *schema.Provider {
		return plugins.In(c.Directory.In(rename(dir), c.Env, nil)).KeptSchemas(ctx, required)
	}
}

// SkipEffects configures a comparison that does not depend on the machine: the results of programs, and of get_env
// for variables that are not set, are unknown. No credentials are requested, since nothing would use them.
func SkipEffects(o *estate.Options) {
	o.Machine.Run, o.UnsetUnknown, o.Credentials.Later = sys.SkipPrograms, true, true
}

// CompareFiles compares the units below a directory by value with those if files have other texts; see
// CompareRevisions. No program runs.
func CompareFiles(ctx context.Context, c *command.Call, o estate.Options, dir string, texts map[string][]byte) (*Comparison, *source.Set, diag.List) {
	show := func(file string) string { return filepath.ToSlash(sys.RelativeTo(c.Dir, file)) }
	base := compared{r: affected.Revision{OutlineOptions: estate.OutlineOptions{Show: show}}, dir: dir, overlay: &stacks.Overlay{}}
	head := compared{r: affected.Revision{OutlineOptions: estate.OutlineOptions{Show: show}}, dir: dir, overlay: &stacks.Overlay{}}
	SkipEffects(&o)
	for path, text := range texts {
		head.overlay.Replace(path, text)
	}
	files := o.Host.Files()
	if paths := slices.Sorted(maps.Keys(texts)); !slices.ContainsFunc(paths, func(path string) bool { _, err := files.Stat(path); return err != nil }) {
		head.since(paths, filepath.Clean, &base, o.Host)
	}
	return compare(ctx, c, o, nil, base, head)
}

// compared is one side of a comparison of estates.
type compared struct {
	r       affected.Revision
	of      *revision.Revision // nil for files without one
	dir     string
	overlay *stacks.Overlay
	files   func(*readfile.Kept) *readfile.Kept // returns the reader of the files; may be nil
	changed func(path string) ([]byte, bool)    // estate.Options.Changed
}

// since records the files whose contents differ from those of another side; see affected.ChangesIn.
func (x *compared) since(paths []string, resolve func(path string) string, from *compared, h estate.Host) {
	h = from.host(h)
	x.changed, x.r.UnitFilesOnly = affected.ChangesIn(paths, resolve, h.Files())
}

// host returns the host of this side.
func (x *compared) host(h estate.Host) estate.Host {
	if x.files != nil {
		d := *h.Plugins.Directory
		d.Files = x.files(d.Files)
		h.Plugins = h.Plugins.In(&d)
	}
	return h
}

func compare(ctx context.Context, c *command.Call, o estate.Options, warn Warn, both ...compared) (*Comparison, *source.Set, diag.List) {
	if o.At.IsZero() {
		o.At = c.Now() // timestamp() has the same value in both revisions
	}
	o.Parses = &syntax.Parses{}
	if both[0].dir == both[1].dir { // no program runs that could change files
		d := *o.Host.Plugins.Directory
		d.Files = d.Files.Snapshot()
		o.Host.Plugins = o.Host.Plugins.In(&d)
	}
	c.Report.Units = true
	found := parallel.Map(len(both), len(both), func(i int) diag.List { // at once, so that they share parsed files
		eo := o
		eo.Discovery.Root, eo.Discovery.Overlay = both[i].dir, both[i].overlay
		eo.Discovery.Whole, eo.Discovery.Compared, eo.Checking = true, true, true
		eo.Host, eo.Changed = both[i].host(o.Host), both[i].changed
		e, ds := open(ctx, c, eo)
		both[i].r.Estate = e
		return ds
	})
	for i, side := range both {
		e := side.r.Estate
		defer e.Close(ctx)
		if ctx.Err() != nil {
			return nil, e.Sources(), diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The comparison was interrupted.")
		}
		errs := e.Found.General
		if !e.Found.Chosen {
			errs = found[i].Errors()
		}
		if errs.HasErrors() {
			set, ds := ofRevision(side, e.Sources(), errs.Once())
			return nil, set, ds
		}
	}
	var mu sync.Mutex
	if warn != nil {
		for i := range both {
			if side := both[i]; len(found[i].Warnings()) > 0 {
				set, w := ofRevision(side, side.r.Estate.Sources(), found[i].Warnings())
				warn(side.of, "", set, w)
			}
			of := both[i].of
			both[i].r.Warn = func(unit string, ds diag.List, files *source.Set, path func(file string) string) {
				set := &source.Set{}
				ds = OfRevision(of, func(file string) string { return sys.RelativeTo(c.Report.Dir, of.Located(path(file))) }, set, files, ds)
				mu.Lock()
				defer mu.Unlock()
				warn(of, unit, set, ds)
			}
		}
	}
	differ, failed, ds := affected.Estates(ctx, both[0].r, both[1].r)
	out := &Comparison{Units: differ}
	for _, f := range failed {
		out.NotCompared = append(out.NotCompared, f.Name)
		f.Base.Messages = slices.DeleteFunc(slices.Clone(f.Base.Messages), func(m *diag.Message) bool {
			return slices.ContainsFunc(f.Head.Messages, func(n *diag.Message) bool {
				return both[0].sameAs(m, &f.Base) == both[1].sameAs(n, &f.Head)
			})
		})
	}
	if len(failed) > 0 {
		out.Base, out.Head = both[0].located(c, failed, false), both[1].located(c, failed, true)
	}
	return out, both[1].r.Estate.Sources(), ds
}

// identity identifies an error in both revisions.
type identity struct{ code, summary, detail, file, text string }

// sameAs returns the identity of an error of a unit: its text, and the text at its position.
func (x *compared) sameAs(m *diag.Message, of *affected.Errors) identity {
	id := identity{code: m.Code, summary: m.Summary, detail: x.shown(m.Detail)}
	if m.At == nil {
		return id
	}
	files, file := of.Files, m.At.Filename
	if files == nil {
		files = x.r.Estate.Sources()
	}
	if f := files.File(file); f != nil && m.At.End.Byte <= len(f.Bytes) && m.At.Start.Byte <= m.At.End.Byte {
		id.text = string(f.Bytes[m.At.Start.Byte:m.At.End.Byte])
	}
	if of.Path != nil {
		file = of.Path(file)
	}
	id.file = x.shown(file)
	return id
}

// shown replaces the paths of the revision by those that are shown.
func (x *compared) shown(text string) string {
	if x.r.Rename != nil {
		return x.r.Rename(text)
	}
	return text
}

// located returns the errors of units in this revision. An error that several units have is contained once.
func (x *compared) located(c *command.Call, failed []*affected.Failed, head bool) Located {
	out := Located{Files: &source.Set{}}
	of := x.of
	if of == nil {
		of = &revision.Revision{Name: revision.WorkingTree}
	}
	var units []*discovery.Unit
	var all []diag.List
	for _, f := range failed {
		errs := &f.Base
		if head {
			errs = &f.Head
		}
		if len(errs.Messages) == 0 {
			continue
		}
		path, files := of.Located, x.r.Estate.Sources()
		if errs.Files != nil {
			path, files = func(file string) string { return sys.RelativeTo(c.Report.Dir, of.Located(errs.Path(file))) }, errs.Files
		}
		units = append(units, errs.Of)
		all = append(all, OfRevision(of, path, out.Files, files, errs.Messages))
	}
	out.Messages = discovery.Reported{}.Join(units, all)
	return out
}

// ofRevision returns messages about the files of a revision as OfRevision does.
func ofRevision(side compared, files *source.Set, ds diag.List) (*source.Set, diag.List) {
	if side.of == nil || side.of.Name == revision.WorkingTree {
		return files, ds
	}
	set := &source.Set{}
	return set, OfRevision(side.of, side.of.Located, set, files, ds)
}

// OfRevision returns messages about the files of a revision with the paths that are shown, which are those
// of the working tree, and with the name of the revision. file returns the path of the file of a range. set
// receives the files by these paths.
func OfRevision(r *revision.Revision, file func(string) string, set, files *source.Set, ds diag.List) diag.List {
	at := func(x *source.Range) *source.Range {
		if x == nil {
			return nil
		}
		n := *x
		n.Filename = file(x.Filename)
		set.Adopt(n.Filename, files, x.Filename)
		return &n
	}
	out := make(diag.List, len(ds))
	for i, m := range ds {
		n := *m // other callers have the message too
		n.At, n.Context, n.Detail, n.Notes = at(m.At), at(m.Context), r.Located(m.Detail), nil
		for _, note := range m.Notes {
			n.Notes = append(n.Notes, diag.Note{Text: r.Located(note.Text), At: at(note.At)})
		}
		if r.Name != revision.WorkingTree {
			n.Notes = append(n.Notes, diag.Note{Text: AboutRevision(r)})
		}
		out[i] = &n
	}
	return out
}

// AboutRevision returns the note of messages about a revision.
func AboutRevision(r *revision.Revision) string { return "This is about the revision " + r.Name + "." }

// differing returns the function that finds units for filters such as affected=main.
func differing(c *command.Call, o *estate.Options) func(ctx context.Context, base string) (map[string]bool, diag.List) {
	return func(ctx context.Context, base string) (map[string]bool, diag.List) {
		var ds diag.List
		all, ok := o.Answers.Differing(base, func() (names []string, ok bool) {
			names, ds = differingFrom(ctx, c, o, base)
			return names, !ds.HasErrors()
		})
		if !ok {
			if !ds.HasErrors() {
				ds = diag.Errorf(diag.CodeCLIRevision, nil, "Invalid revision", "The run that started this worker recorded no list of the units that differ from %s.", base)
			}
			return nil, ds
		}
		names := map[string]bool{}
		for _, name := range all {
			names[name] = true
		}
		return names, ds
	}
}

// differingFrom returns the names of the units whose values differ from a revision, and a warning about
// the units that were removed since then.
func differingFrom(ctx context.Context, c *command.Call, o *estate.Options, base string) ([]string, diag.List) {
	pair, ds := Revisions(ctx, c, o.Worktrees, o.Discovery.Root, []string{base}, false)
	if ds.HasErrors() {
		return nil, ds
	}
	defer pair.Close(ctx)
	eo := *o
	eo.Discovery.Filters, eo.Discovery.Affected, eo.Discovery.Generate = nil, nil, true
	SkipEffects(&eo)
	found, set, ds := CompareRevisions(ctx, c, eo, pair, nil)
	if ds.HasErrors() {
		c.Report.Set.Include(set)
		return nil, ds
	}
	var removed, warned []string
	names := found.NotCompared // the run reports the errors of the working tree
	for _, m := range found.Base.Messages {
		text := m.Summary
		if m.At != nil {
			text = fmt.Sprintf("%s:%d: %s", filepath.ToSlash(sys.RelativeTo(c.Report.Dir, m.At.Filename)), m.At.Start.Line, text)
		}
		warned = append(warned, text)
	}
	if len(warned) > 0 {
		ds = diag.Warnf(diag.CodeCLIUnitsNotCompared, nil, "Units not compared", "The configuration of the revision %s has errors, so that these units were not compared, and are selected: %s. The errors are: %s.", base, view.ShortList(found.NotCompared), view.ShortList(warned))
	}
	for _, u := range found.Units {
		names = append(names, u.Name)
		if u.Action == affected.Removed {
			removed = append(removed, u.Name)
		}
	}
	if len(removed) == 0 {
		return names, ds
	}
	return names, append(ds, diag.Warnf(diag.CodeCLIUnitsRemoved, nil, "Units removed", "The configuration no longer contains these units of the revision %[1]s, so that the run omits them: %[2]s. Their states and objects remain. To destroy the objects, check out the revision and destroy these units. For units that no stack generates, a plan with --filter '[%[1]s...HEAD]' does the same.", base, view.ShortList(removed))...)
}

// ValuesDiffer returns an error that names the values in a comparison of the units before and after
// a migration. Values that may change are no difference.
func ValuesDiffer(all []*affected.Unit) diag.List {
	var names []string
	for _, u := range all {
		for _, x := range u.Objects {
			for _, change := range x.Changes {
				if change.Action != affected.MayChange {
					names = append(names, strings.TrimSpace(u.Name+": "+x.Address+" "+change.Path))
				}
			}
			if len(x.Changes) == 0 {
				names = append(names, u.Name+": "+x.Address)
			}
		}
		if len(u.Objects) == 0 {
			names = append(names, u.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return diag.Errorf(diag.CodeCLIMigration, nil, "Migration changes values", "Nothing was written, because these values would differ: %s.", view.ShortList(names))
}
