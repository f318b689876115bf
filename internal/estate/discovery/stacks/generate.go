// Package stacks makes the units of stack files, and reads what stack files consist of.
//
// A stack file says which units and stacks are made below its folder: what their
// source holds is copied, and the values file and the autoinclude file are written
// beside it. Stacks that are made are stack files themselves, so it goes on level
// by level. What was put into a folder is listed there, so that making it again
// takes away what the source no longer has and leaves everything else: the state
// that a unit keeps in its folder above all.
//
// Main functions: Generate and Parts. The one rule: where something is wrong with one
// stack file, nothing is made of any on its level, unless Settings.Whole says otherwise.
package stacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// deepest is how deep stacks may lie in each other.
const deepest = 50

// Settings say what stacks are generated with.
type Settings struct {
	Env       unit.Env          // in which stack files are evaluated
	SourceMap map[string]string // of --source-map
	Fetch     func(ctx context.Context, src string) (dir string, ds diag.List)
	Whole     bool                  // everything is made that is right, so that it can be checked too
	Generated func(*unit.StackItem) // is called for each unit and stack that is made; may be nil
	// Overlay, if not nil, gets what would be made, and nothing is written. Env must read
	// files through it.
	Overlay *Overlay
}

// Generate makes what stack files say. find gives the stack files that there are; level
// is 0 at first, and each further one has those that were made by the one before. The text
// that messages are about is added to set. incomplete are the folders of stack files of
// which not everything was made.
func Generate(ctx context.Context, s Settings, set *source.Set, find func(level int) ([]string, diag.List)) (incomplete map[string]bool, ds diag.List) {
	g := &generator{s: s, set: set, fetcher: workcopy.NewFetcher(s.Fetch), wrong: map[string]bool{}}
	ctx, span := telemetry.Start(ctx, "stack_generate")
	span.Text("working_dir", s.Env.WorkingDir)
	defer func() {
		span.Messages(ds)
		span.End()
	}()
	done := map[string]bool{}
	for level := 0; ; level++ {
		found, more := find(level)
		if ds = append(ds, more...); more.HasErrors() {
			return g.wrong, ds
		}
		next := outermost(slices.DeleteFunc(found, func(p string) bool { return done[p] }))
		if len(next) == 0 {
			return g.wrong, ds
		}
		if level == deepest {
			return g.wrong, append(ds, Invalid("Stacks lie too deep in each other", "More than %d stacks lie in each other at %s. One of them is made of itself, most likely.", deepest, next[0])...)
		}
		g.loader = unit.NewLoader(s.Env)
		for _, p := range next {
			done[p] = true
		}
		if ds = append(ds, g.level(ctx, next)...); ds.HasErrors() && !s.Whole {
			return g.wrong, ds
		}
	}
}

// outermost leaves out stack files that another one of the list makes anew: what an
// earlier run has made may be out of date.
func outermost(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return slices.ContainsFunc(paths, func(other string) bool {
			return strings.HasPrefix(p, filepath.Join(filepath.Dir(other), unit.StackDir)+string(filepath.Separator))
		})
	})
}

// Invalid is an error about a stack.
func Invalid(summary, format string, args ...any) diag.List {
	return diag.Errorf(diag.CodeEstateStack, nil, summary, format, args...)
}

// generator makes what stack files say.
type generator struct {
	s       Settings
	set     *source.Set
	loader  *unit.Loader
	fetcher *workcopy.Fetcher
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
		if ds = append(ds, more...); len(items) == 0 && !ds.HasErrors() {
			ds = append(ds, Invalid("Empty stack", "The stack file %s has no unit and no stack block.", paths[i])...)
		}
		return result{items, ds}
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
	if ds.HasErrors() && !g.s.Whole {
		return g.withText(ds)
	}
	made := parallel.Map(len(items), 0, func(i int) diag.List { return g.item(ctx, &items[i]) })
	for i := range made {
		if made[i].HasErrors() {
			g.wrong[filepath.Dir(items[i].At.Filename)] = true
		} else if g.s.Generated != nil {
			g.s.Generated(&items[i])
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
		return append(ds, Invalid("Failed to generate from a stack", "The %s %q cannot be made in %s: %s.", it.Kind, it.Name, it.Dir, err).Under(&it.At)...)
	}
	want := unit.DefaultName
	if it.Kind == "stack" {
		want = unit.StackName
	}
	if _, err := g.s.Overlay.Stat(filepath.Join(it.Dir, want)); err != nil && it.Validate {
		return append(ds, Invalid("Not a "+it.Kind, "The source %q of the %s %q holds no file %s. Set no_validation if that is meant.", it.Source, it.Kind, it.Name, want).Under(&it.At)...)
	}
	return ds
}

// sourceDir finds what an item is made of.
func (g *generator) sourceDir(ctx context.Context, it *unit.StackItem) (string, diag.List) {
	src := workcopy.ReplaceSource(it.Source, g.s.SourceMap)
	root, sub := unit.SplitSource(unit.Getter(src))
	if unit.LocalSource(root) {
		dir := strings.TrimPrefix(root, "file://")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(it.At.Filename), dir)
		}
		dir = filepath.Join(dir, filepath.FromSlash(sub))
		if dir = g.s.Overlay.Locate(dir); !isDir(dir) {
			return "", Invalid("Source of a stack not found", "The source of the %s %q, %q, leads to %s, which is not a folder.", it.Kind, it.Name, it.Source, dir).Under(&it.At)
		}
		return dir, nil
	}
	if !g.fetcher.Can() {
		return "", Invalid("Source cannot be fetched", "The source %q is not local, and this program fetches nothing.", src).Under(&it.At)
	}
	pkg, ds := g.fetcher.Get(ctx, root)
	if ds.HasErrors() {
		return "", slices.Clone(ds).Under(&it.At)
	}
	dir := filepath.Join(pkg, filepath.FromSlash(sub))
	if !isDir(dir) {
		return "", Invalid("Source of a stack not found", "The package %q has no folder %q.", root, sub).Under(&it.At)
	}
	return dir, ds
}

// beside are the files that are made beside those of the source, by name.
func beside(it *unit.StackItem) map[string][]byte {
	out := map[string][]byte{}
	if it.Values != nil {
		out[unit.ValuesName] = it.Values
	}
	if it.AutoInclude != nil {
		out[it.AutoIncludeFile()] = it.AutoInclude
	}
	return out
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// write puts an item on disk.
func (g *generator) write(from string, it *unit.StackItem) error {
	if rel, err := filepath.Rel(from, it.Dir); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("it would lie in its own source %s", from)
	}
	if g.s.Overlay != nil {
		g.s.Overlay.add(from, it)
		return nil
	}
	if err := inside.Below(it.Dir, filepath.Dir(it.At.Filename)); err != nil {
		return err
	}
	if err := os.MkdirAll(it.Dir, 0o755); err != nil {
		return err
	}
	put := copytree.Files{}
	if err := put.Add(from, it.Dir, copytree.Rules{All: true}); err != nil {
		return err
	}
	if err := put.Copy(it.Dir, nil); err != nil {
		return err
	}
	for name, b := range beside(it) {
		path := filepath.Join(it.Dir, name)
		put[path] = copytree.File{}
		if err := atomicfile.WriteMode(path, b, 0o644); err != nil {
			return err
		}
	}
	return copytree.Forget(it.Dir, put)
}
