package estate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # Stacks
//
// A stack file says which units and stacks are made below its folder: what their
// source holds is copied, and the values file and the autoinclude file are written
// beside it. Stacks that are made are stack files themselves, so it goes on level
// by level. What was put into a folder is listed there, so that making it again
// takes away what the source no longer has and leaves everything else: the state
// that a unit keeps in its folder above all.

// deepest is how deep stacks may lie in each other.
const deepest = 50

// GenerateStacks makes the units of all stack files below the root of the options.
// The text that messages are about is added to set. Where something is wrong with one
// stack file, nothing is made of any on its level; with Look.Whole everything is made
// that is right, so that it can be checked too.
func GenerateStacks(ctx context.Context, o Options, set *source.Set) diag.List {
	return newGenerator(o, set).all(ctx)
}

func newGenerator(o Options, set *source.Set) *generator {
	return &generator{o: o, set: set, fetched: new(parallel.Cache[string, fetched]), wrong: map[string]bool{}}
}

// all makes what all stack files say, level by level.
func (g *generator) all(ctx context.Context) (ds diag.List) {
	o := g.o
	ctx, s := telemetry.Start(ctx, "stack_generate")
	s.Text("working_dir", o.Root)
	defer func() { over(s, ds) }()
	done := map[string]bool{}
	for level := 0; ; level++ {
		found, more := discover(o.Look, o.Request.DownloadDir, o.Root)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		next := slices.DeleteFunc(found.stacks, func(p string) bool { return done[p] })
		if level == 0 && o.Look.OnlyStacks {
			if next, more = chosenStacks(o, next); more.HasErrors() {
				return append(ds, more...)
			}
		}
		if len(next) == 0 {
			return ds
		}
		if level == deepest {
			return append(ds, stackErr("Stacks lie too deep in each other", "More than %d stacks lie in each other at %s. One of them is made of itself, most likely.", deepest, next[0])...)
		}
		g.loader = unit.NewLoader(o.UnitEnv())
		for _, p := range next {
			done[p] = true
		}
		if ds = append(ds, g.level(ctx, next)...); ds.HasErrors() && !o.Look.Whole {
			return ds
		}
	}
}

// chosenStacks are the stack files that the filters leave.
func chosenStacks(o Options, paths []string) ([]string, diag.List) {
	queries, ds := parseQueries(o.Look.Filters)
	f := &filtering{e: &Estate{o: o}}
	at := map[*item]string{}
	for _, p := range paths {
		it := &item{name: f.e.name(filepath.Dir(p))}
		f.all = append(f.all, it)
		at[it] = p
	}
	for _, q := range queries {
		if slices.ContainsFunc(q.terms, func(t term) bool { return t.kind == termGit || t.up > 0 || t.down > 0 }) {
			ds = append(ds, badFilter(q.text, "stacks are chosen by name, path and type alone when they are generated")...)
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

func stackErr(summary, format string, args ...any) diag.List {
	ds := diag.Errorf(nil, summary, format, args...)
	ds[0].Code = "estate/stack"
	return ds
}

// generator makes what stack files say.
type generator struct {
	o       Options
	set     *source.Set
	loader  *unit.Loader
	fetched *parallel.Cache[string, fetched]
	wrong   map[string]bool // the folders of stack files of which not everything was made
}

// level makes what the given stack files say.
func (g *generator) level(ctx context.Context, paths []string) diag.List {
	type result struct {
		items []unit.StackItem
		ds    diag.List
	}
	all := parallel.Map(len(paths), 0, func(i int) (r result) {
		t := g.loader.Task(ctx)
		st, ds := g.loader.Stack(t, paths[i])
		if st == nil || ds.HasErrors() {
			return result{ds: ds}
		}
		items, more := st.Items(t)
		return result{items, append(ds, more...)}
	})
	var ds diag.List
	var items []unit.StackItem
	for i, r := range all {
		ds = append(ds, r.ds...)
		items = append(items, r.items...)
		if r.ds.HasErrors() {
			g.wrong[filepath.Dir(paths[i])] = true
		}
	}
	if ds.HasErrors() && !g.o.Look.Whole {
		return g.withText(ds)
	}
	made := parallel.Map(len(items), 0, func(i int) diag.List { return g.item(ctx, &items[i]) })
	for i := range made {
		if made[i].HasErrors() {
			g.wrong[filepath.Dir(items[i].At.Filename)] = true
		} else if g.o.Look.Generated != nil {
			g.o.Look.Generated(&items[i])
		}
	}
	return g.withText(append(ds, slices.Concat(made...)...))
}

// withText keeps the text that messages are about.
func (g *generator) withText(ds diag.List) diag.List {
	for _, m := range ds {
		if m.At != nil {
			if f := g.loader.Sources().File(m.At.Filename); f != nil {
				g.set.Add(f)
			}
		}
	}
	return ds
}

// item makes one unit or stack.
func (g *generator) item(ctx context.Context, it *unit.StackItem) diag.List {
	from, ds := g.sourceDir(ctx, it)
	if ds.HasErrors() {
		return ds
	}
	if err := g.write(from, it); err != nil {
		return append(ds, stackErr("Failed to generate from a stack", "The %s %q cannot be made in %s: %s.", it.Kind, it.Name, it.Dir, err).Under(&it.At)...)
	}
	want := unit.DefaultName
	if it.Kind == "stack" {
		want = unit.StackName
	}
	if _, err := os.Stat(filepath.Join(it.Dir, want)); err != nil && it.Validate {
		return append(ds, stackErr("Not a "+it.Kind, "The source %q of the %s %q holds no file %s. Set no_validation if that is meant.", it.Source, it.Kind, it.Name, want).Under(&it.At)...)
	}
	return ds
}

// sourceDir finds what an item is made of.
func (g *generator) sourceDir(ctx context.Context, it *unit.StackItem) (string, diag.List) {
	src := replaceSource(it.Source, g.o.Sources.Map)
	root, sub := unit.SplitSource(unit.Getter(src))
	if unit.LocalSource(root) {
		dir := strings.TrimPrefix(root, "file://")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(it.At.Filename), dir)
		}
		dir = filepath.Join(dir, filepath.FromSlash(sub))
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", stackErr("Source of a stack not found", "The source of the %s %q, %q, leads to %s, which is no folder.", it.Kind, it.Name, it.Source, dir).Under(&it.At)
		}
		return dir, nil
	}
	if g.o.Host.Fetch == nil {
		return "", stackErr("Source cannot be fetched", "The source %q is not local, and this program fetches nothing.", src).Under(&it.At)
	}
	got := g.fetched.Do(root, func() fetched {
		dir, ds := g.o.Host.Fetch(ctx, root)
		return fetched{dir, ds}
	})
	if got.ds.HasErrors() {
		return "", slices.Clone(got.ds).Under(&it.At)
	}
	dir := filepath.Join(got.dir, filepath.FromSlash(sub))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", stackErr("Source of a stack not found", "The package %q has no folder %q.", root, sub).Under(&it.At)
	}
	return dir, got.ds
}

// write puts an item on disk.
func (g *generator) write(from string, it *unit.StackItem) error {
	if rel, err := filepath.Rel(from, it.Dir); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("it would lie in its own source %s", from)
	}
	if err := os.MkdirAll(it.Dir, 0o755); err != nil {
		return err
	}
	put := parts{}
	if err := put.tree(from, it.Dir, copyRules{all: true}); err != nil {
		return err
	}
	if err := put.copy(nil); err != nil {
		return err
	}
	for name, b := range map[string][]byte{unit.ValuesName: it.Values, it.AutoIncludeFile(): it.AutoInclude} {
		if b == nil {
			continue
		}
		path := filepath.Join(it.Dir, name)
		put[path] = part{}
		if err := atomicfile.WriteMode(path, b, 0o644); err != nil {
			return err
		}
	}
	return forget(it.Dir, put)
}
