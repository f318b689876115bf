package estate

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/unit"
)

// # What changed
//
// [A...B] in a filter stands for the units that differ between two commits: those
// with a changed file in their folder, in what their file brings in, or in the
// folder of their local module and of the local modules that it calls. [A] means
// [A...HEAD]. Units that A has and B has not are removed: their configuration is read
// from a worktree of A, so that what they manage can be destroyed. Where B is not what
// is checked out, the units are those of a worktree of B (worktree.go). As in Terragrunt
// the two commits are compared themselves; no common ancestor is looked for.

// history is what an estate knows of its repository besides what is checked out. The
// zero value knows nothing.
type history struct {
	changes   map[string]*changes // by what stands in the brackets of filters
	worktrees map[string]string   // by commit
	top       string              // of the repository that these are of
}

// changes is what differs between two commits.
type changes struct {
	from, to string // as written
	files    map[string]bool
	dirs     map[string]bool // folders with a changed file somewhere below
	removed  []string        // folders of units that are no longer there
}

// readGit finds out what the git expressions of queries stand for.
func (e *Estate) readGit(ctx context.Context, queries []query) diag.List {
	for i := range queries {
		for j := range queries[i].terms {
			t := &queries[i].terms[j]
			if t.kind != termGit || e.history.changes[t.value] != nil {
				continue
			}
			c, err := e.compare(ctx, t.value)
			if err != nil {
				return badFilter(queries[i].text, err.Error())
			}
			if e.history.changes == nil {
				e.history.changes = map[string]*changes{}
			}
			e.history.changes[t.value] = c
			if ds := e.bringBack(ctx, c); ds.HasErrors() {
				return ds
			}
		}
	}
	return nil
}

// commits are the two that stand in the brackets of a filter.
func commits(text string) (from, to string, err error) {
	from, to, ok := strings.Cut(text, dots)
	if !ok {
		to = "HEAD"
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	if from == "" || to == "" || strings.HasPrefix(from, "-") || strings.HasPrefix(to, "-") {
		return "", "", fmt.Errorf("[%s] does not name two commits", text)
	}
	return from, to, nil
}

// compare asks git what differs.
func (e *Estate) compare(ctx context.Context, text string) (*changes, error) {
	from, to, err := commits(text)
	if err != nil {
		return nil, err
	}
	c := &changes{from: from, to: to, files: map[string]bool{}, dirs: map[string]bool{}}
	top := repository(e.o.Root) // of the worktree, if the units are looked at in one
	if e.o.repo == "" {
		shown, err := e.o.git().run(ctx, "rev-parse", "--show-toplevel")
		if err != nil {
			return nil, err
		}
		top = e.asRoot(shown)
	}
	out, err := e.o.git().run(ctx, "diff", "--name-status", "--no-renames", "-z", c.from, c.to, "--")
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		path := filepath.Join(top, filepath.FromSlash(words[i+1]))
		c.files[path] = true
		for dir := filepath.Dir(path); !c.dirs[dir]; dir = filepath.Dir(dir) {
			c.dirs[dir] = true
		}
		if words[i] == "D" && isUnitName(filepath.Base(path), e.o.Look.ConfigName) {
			c.removed = append(c.removed, path)
		}
	}
	return c, nil
}

func isUnitName(name, configName string) bool {
	return name == unit.DefaultName || name == unit.DefaultJSONName || name == configName
}

// asRoot is git's name of the repository in the words of the estate's root, which
// may lead through links that git resolves.
func (e *Estate) asRoot(top string) string {
	real, err := filepath.EvalSymlinks(e.o.Root)
	if err != nil {
		return top
	}
	rel, err := filepath.Rel(real, filepath.FromSlash(top))
	if err != nil {
		return top
	}
	return filepath.Join(e.o.Root, rel)
}

// A gitIn runs git in a folder.
type gitIn struct {
	dir     string
	machine unit.Machine
}

// git is git in the repository that the units are in.
func (o *Options) git() gitIn { return gitIn{cmp.Or(o.repo, o.Root), o.Machine} }

// run runs git and returns what it prints.
func (g gitIn) run(ctx context.Context, args ...string) (string, error) {
	if g.machine.Run == nil {
		return "", fmt.Errorf("git cannot be run here")
	}
	var out, said sys.Buffer
	err := g.machine.Run(ctx, sys.Command{Path: "git", Args: args, Dir: g.dir, Env: g.machine.Environ, Stdout: &out, Stderr: &said})
	if err != nil {
		why := strings.TrimSpace(said.String())
		if why == "" {
			why = err.Error()
		}
		return "", fmt.Errorf("git %s: %s", args[0], why)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Affected is the filter of --filter-affected: what differs between the default
// branch and HEAD.
func Affected(ctx context.Context, o Options) (string, diag.List) {
	if ref, err := o.git().run(ctx, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"); err == nil {
		return "[" + ref + "...HEAD]", nil
	}
	if _, err := o.git().run(ctx, "rev-parse", "--git-dir"); err != nil {
		return "", badFilter("--filter-affected", err.Error())
	}
	for _, name := range [...]string{"main", "master"} {
		if _, err := o.git().run(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+name); err == nil {
			return "[" + name + "...HEAD]", nil
		}
	}
	return "", badFilter("--filter-affected", "the repository has no remote that says which branch is its default one, and no branch main or master; name the commit with --filter '[COMMIT...HEAD]'")
}

// bringBack adds the units that are no longer there.
func (e *Estate) bringBack(ctx context.Context, c *changes) diag.List {
	var ds diag.List
	for _, path := range c.removed {
		dir := filepath.Dir(path)
		if e.unitIn(dir) != nil || !inside(dir, e.o.Root) {
			continue
		}
		if e.o.Look.Lenient {
			u := e.add(&unit.Unit{ID: dir, Dir: dir, Path: path})
			u.Removed, u.Broken = true, diag.List{}
			continue
		}
		tree, err := e.worktree(ctx, c.from)
		if err != nil {
			return append(ds, badFilter("["+c.from+"..."+c.to+"]", err.Error())...)
		}
		rel, err := filepath.Rel(repository(e.o.Root), path)
		if err != nil {
			continue
		}
		units, more := e.loader.Load(e.task(ctx), filepath.Join(tree, rel))
		ds = append(ds, more...)
		for _, in := range units {
			u := e.add(in)
			u.Name, u.Removed = e.name(dir), true
		}
	}
	slices.SortFunc(e.Units, byName)
	return ds
}

func (e *Estate) unitIn(dir string) *Unit {
	if u := e.byID[dir]; u != nil {
		return u
	}
	i := slices.IndexFunc(e.Units, func(u *Unit) bool { return u.Dir == dir })
	if i < 0 {
		return nil
	}
	return e.Units[i]
}

// found notes by which commit a query found a unit, which may be nil. Reports count its
// name from the repository then, as Terragrunt's do, which looks for it in a worktree.
func (e *Estate) found(q *query, u *Unit) {
	i := slices.IndexFunc(q.terms, func(t term) bool { return t.kind == termGit && !t.not })
	if i < 0 || u == nil || u.Found.Ref != "" {
		return
	}
	c := e.history.changes[q.terms[i].value]
	if c == nil {
		return
	}
	if u.Found.Ref = c.to; u.Removed {
		u.Found.Ref = c.from
	}
	if rel, err := filepath.Rel(repository(e.o.Root), filepath.Join(e.o.Root, filepath.FromSlash(u.Name))); err == nil {
		u.Found.name = filepath.ToSlash(rel)
	}
}

// changed reports whether a unit differs.
func (f *filtering) changed(c *changes, u *Unit) bool {
	if u.Removed {
		return slices.ContainsFunc(c.removed, func(p string) bool { return f.e.name(filepath.Dir(p)) == u.Name })
	}
	if f.touched(c)[u.Dir] {
		return true
	}
	if slices.ContainsFunc(f.files(u), func(p string) bool { return c.files[p] }) {
		return true
	}
	return slices.ContainsFunc(f.e.moduleDirs(f.ctx, u), func(dir string) bool { return c.dirs[dir] })
}

// touched are the folders of units with a changed file: each file counts for the
// unit that it is nearest to.
func (f *filtering) touched(c *changes) map[string]bool {
	if out := f.near[c]; out != nil {
		return out
	}
	units := map[string]bool{}
	for _, u := range f.e.Units {
		units[u.Dir] = true
	}
	out := map[string]bool{}
	for path := range c.files {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if units[dir] {
				out[dir] = true
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if f.near == nil {
		f.near = map[*changes]map[string]bool{}
	}
	f.near[c] = out
	return out
}

// moduleDirs are the folders of a unit's local module and of the local modules
// that it calls, but for the unit's own.
func (e *Estate) moduleDirs(ctx context.Context, u *Unit) []string {
	if u.unread() {
		return nil
	}
	m := e.localModule(e.task(ctx), u)
	if m == nil {
		return nil
	}
	return e.shared.below.Do(m.Dir, func() []string {
		seen := map[string]bool{}
		var visit func(m *config.Module)
		visit = func(m *config.Module) {
			if seen[m.Dir] {
				return
			}
			seen[m.Dir] = true
			for _, call := range m.Calls {
				if call.Source == nil {
					continue
				}
				v, ds := call.Source.Expr.Value(nil)
				if ds.HasErrors() || !isText(v) || !strings.HasPrefix(v.AsString(), ".") {
					continue
				}
				if sub, more := config.Load(filepath.Join(m.Dir, filepath.FromSlash(v.AsString())), config.Options{}); !more.HasErrors() {
					visit(sub)
				}
			}
		}
		visit(m)
		out := make([]string, 0, len(seen))
		for dir := range seen {
			out = append(out, dir)
		}
		slices.Sort(out)
		return out
	})
}

// moduleFiles are the configuration files below the folder that a unit's source
// leads to, if that is local.
func (e *Estate) moduleFiles(ctx context.Context, u *Unit) []string {
	tf, ds := u.Terraform(e.task(ctx))
	if ds.HasErrors() || tf == nil || tf.Source == nil {
		return nil
	}
	m := e.localModule(e.task(ctx), u)
	if m == nil {
		return nil
	}
	dir := m.Dir
	return e.shared.listings.Do(dir, func() []string {
		var found []string
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // what cannot be read is not read by the unit either
			case d.IsDir() && private(d.Name()):
				return filepath.SkipDir
			case !d.IsDir() && (isConfig(d.Name()) || strings.HasSuffix(d.Name(), ".hcl")):
				found = append(found, p)
			}
			return nil
		})
		return found
	})
}
