package discovery

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/unit"
)

// # What changed
//
// [A...B] in a filter stands for the units that differ between two commits: those
// with a changed file in their folder, in what their file brings in, or in the
// folder of their local module and of the local modules that it calls. [A] means
// [A...HEAD]. Units that A has and B has not are removed: their configuration is read
// from a worktree of A, so that what they manage can be destroyed. Where B is not what
// is checked out, the units are those of a worktree of B. What a unit manages is the same
// wherever its files were read: local state, and the folder in which the unit runs, are
// those that it has where the repository itself is checked out.

// readGit finds out what the git expressions of queries stand for.
func (f *finder) readGit(ctx context.Context, queries []filter.Query) diag.List {
	for _, q := range queries {
		for _, t := range q.Terms {
			if t.Kind != filter.ByGit || f.changes[t.Value] != nil {
				continue
			}
			top, err := git.Root(f.s.Root), error(nil) // of the worktree, if the units are looked at in one
			if !f.elsewhere {
				top, err = f.tools.Git.Top(ctx, f.s.Root)
			}
			var c *git.Changes
			if err == nil {
				c, err = f.tools.Git.Compare(ctx, t.Value, top)
			}
			if err != nil {
				return filter.Invalid(q.Text, diag.Reason(err))
			}
			if f.changes == nil {
				f.changes = map[string]*git.Changes{}
			}
			f.changes[t.Value] = c
			if ds := f.restoreDeleted(ctx, c); ds.HasErrors() {
				return ds
			}
		}
	}
	return nil
}

// moveTo makes the root a folder in a worktree of the commit that filters compare
// with, if that is another than what is checked out.
func (f *finder) moveTo(ctx context.Context, queries []filter.Query) diag.List {
	at := "" // the commit
	for _, q := range queries {
		for _, t := range q.Terms {
			if t.Kind != filter.ByGit {
				continue
			}
			_, to, err := git.Commits(t.Value)
			if err == nil {
				err = f.tools.Git.Exists(ctx)
			}
			if err != nil {
				return filter.Invalid(q.Text, diag.Reason(err))
			}
			id, err := f.tools.Git.Commit(ctx, to)
			switch {
			case err != nil:
				return filter.Invalid(q.Text, fmt.Sprintf("there is no commit %s", to))
			case at != "" && at != id:
				return filter.Invalid(q.Text, "the filters compare with different commits, and units are those of one; filter with one after the other")
			}
			at = id
		}
	}
	if at == "" {
		return nil
	}
	if head, err := f.tools.Git.Commit(ctx, "HEAD"); err != nil || head == at {
		return nil
	}
	top := git.Root(f.s.Root)
	rel, err := filepath.Rel(top, f.s.Root)
	if err != nil || top == "" {
		return filter.Invalid(at, "the working folder does not lie in the repository")
	}
	tree, err := f.Checkouts.Add(ctx, f.tools.Git, f.tools.Worktrees, top, at)
	if err != nil {
		return filter.Invalid(at, diag.Reason(err))
	}
	if _, err := os.Stat(filepath.Join(tree, rel)); err != nil {
		return filter.Invalid(at, "the commit has no folder "+filepath.ToSlash(rel))
	}
	f.s.Root, f.elsewhere = filepath.Join(tree, rel), true
	for _, in := range []*string{&f.s.DependentsIn, &f.s.Boundary} {
		if rel, err := filepath.Rel(top, *in); *in != "" && err == nil && filepath.IsLocal(rel) {
			*in = filepath.Join(tree, rel)
		}
	}
	return nil
}

// restoreDeleted adds the units that are no longer there.
func (f *finder) restoreDeleted(ctx context.Context, c *git.Changes) diag.List {
	var ds diag.List
	for _, path := range c.Deleted {
		if !isUnitName(filepath.Base(path), f.s.ConfigName) {
			continue
		}
		dir := filepath.Dir(path)
		if f.unitIn(dir) != nil || !inside(dir, f.s.Root) {
			continue
		}
		if f.s.Lenient {
			u := f.Add(&unit.Unit{ID: dir, Dir: dir, Path: path})
			u.Removed, u.Broken = true, diag.List{}
			continue
		}
		tree, err := f.Checkouts.Add(ctx, f.tools.Git, f.tools.Worktrees, git.Root(f.s.Root), c.From)
		if err != nil {
			return append(ds, filter.Invalid("["+c.From+"..."+c.To+"]", diag.Reason(err))...)
		}
		rel, err := filepath.Rel(git.Root(f.s.Root), path)
		if err != nil {
			continue
		}
		units, more := f.loader.Load(f.loader.Task(ctx), filepath.Join(tree, rel))
		ds = append(ds, more...)
		for _, in := range units {
			u := f.Add(in)
			u.Name, u.Removed = f.Name(dir), true
		}
	}
	slices.SortFunc(f.Units, ByName)
	return ds
}

func (f *finder) unitIn(dir string) *Unit {
	if u := f.byID[dir]; u != nil {
		return u
	}
	i := slices.IndexFunc(f.Units, func(u *Unit) bool { return u.Dir == dir })
	if i < 0 {
		return nil
	}
	return f.Units[i]
}

// noteCommit notes by which commit a query found a unit, which may be nil. Reports count its
// name from the repository then, as Terragrunt's do, which looks for it in a worktree.
func (f *finder) noteCommit(q *filter.Query, u *Unit) {
	i := slices.IndexFunc(q.Terms, func(t filter.Term) bool { return t.Kind == filter.ByGit && !t.Not })
	if i < 0 || u == nil || u.Commit.Ref != "" {
		return
	}
	c := f.changes[q.Terms[i].Value]
	if c == nil {
		return
	}
	if u.Commit.Ref = c.To; u.Removed {
		u.Commit.Ref = c.From
	}
	if rel, err := filepath.Rel(git.Root(f.s.Root), filepath.Join(f.s.Root, filepath.FromSlash(u.Name))); err == nil {
		u.Commit.Name = filepath.ToSlash(rel)
	}
}

// changed reports whether a unit differs.
func (m *matching) changed(c *git.Changes, u *Unit) bool {
	if u.Removed {
		return slices.ContainsFunc(c.Deleted, func(p string) bool {
			return isUnitName(filepath.Base(p), m.f.s.ConfigName) && m.f.Name(filepath.Dir(p)) == u.Name
		})
	}
	if m.touched(c)[u.Dir] {
		return true
	}
	if slices.ContainsFunc(m.files(u), func(p string) bool { return c.Files[p] }) {
		return true
	}
	return slices.ContainsFunc(m.f.modules.dirs(m.ctx, u), func(dir string) bool { return c.Dirs[dir] })
}

// touched are the folders of units with a changed file: each file counts for the
// unit that it is nearest to.
func (m *matching) touched(c *git.Changes) map[string]bool {
	if out := m.near[c]; out != nil {
		return out
	}
	units := map[string]bool{}
	for _, u := range m.f.Units {
		units[u.Dir] = true
	}
	out := map[string]bool{}
	for path := range c.Files {
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
	if m.near == nil {
		m.near = map[*git.Changes]map[string]bool{}
	}
	m.near[c] = out
	return out
}
