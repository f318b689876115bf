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

// # Changes between commits
//
// [A...B] in a filter selects the units that differ between two commits. A unit differs if a file
// changed in its directory, in the files that its own file includes, in its local module, or in a
// local module which that one calls. [A] means [A...HEAD]. Units that exist in A but not in B are
// removed. Their configuration is read from a worktree of A, so that their objects can be
// destroyed. If B is not the commit that is checked out, all units are read from a worktree of B.
// The local state and the working directory of a unit are always those in the repository's own
// directory, not those in a worktree.

// readGit compares the commits of the git terms of queries.
func (f *finder) readGit(ctx context.Context, queries []filter.Query) (ds diag.List) {
	for _, q := range queries {
		for _, t := range q.Terms {
			if t.Kind == filter.ByAttribute && t.Name == "affected" && f.affected[t.Value] == nil {
				more := f.compare(ctx, q, t.Value)
				if ds = append(ds, more...); more.HasErrors() {
					return ds
				}
			}
			if t.Kind != filter.ByGit || f.changes[t.Value] != nil {
				continue
			}
			top, err := git.Root(f.s.Root), error(nil) // root of the worktree, if units are read from one
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
			more := f.restoreDeleted(ctx, c)
			if ds = append(ds, more...); more.HasErrors() {
				return ds
			}
		}
	}
	return ds
}

// compare finds the units whose values differ from a revision.
func (f *finder) compare(ctx context.Context, q filter.Query, base string) diag.List {
	if f.s.Affected == nil {
		return filter.Invalid(q.Text, "the values of two revisions cannot be compared here")
	}
	names, ds := f.s.Affected(ctx, base)
	if f.affected == nil {
		f.affected = map[string]map[string]bool{}
	}
	f.affected[base] = names
	return ds
}

// moveTo changes the root to a directory in a worktree of the commit that filters compare with,
// if that is not the commit that is checked out.
func (f *finder) moveTo(ctx context.Context, queries []filter.Query) diag.List {
	at := "" // ID of the commit
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
		return filter.Invalid(at, "the working directory does not lie in the repository")
	}
	tree, err := f.Checkouts.Add(ctx, f.tools.Git, f.tools.Worktrees, top, at)
	if err != nil {
		return filter.Invalid(at, diag.Reason(err))
	}
	if _, err := os.Stat(filepath.Join(tree, rel)); err != nil {
		return filter.Invalid(at, "the commit has no directory "+filepath.ToSlash(rel))
	}
	f.s.Root, f.elsewhere = filepath.Join(tree, rel), true
	for _, in := range []*string{&f.s.DependentsIn, &f.s.Boundary} {
		if rel, err := filepath.Rel(top, *in); *in != "" && err == nil && filepath.IsLocal(rel) {
			*in = filepath.Join(tree, rel)
		}
	}
	return nil
}

// restoreDeleted adds the units that were deleted between the commits of c.
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
			u.Name, u.Removed, u.tree = f.Name(dir), true, tree
			if f.removed == nil {
				f.removed = map[string]*Unit{}
			}
			f.removed[dir] = u
		}
	}
	f.formerDependents(ctx, c)
	slices.SortFunc(f.Units, ByName)
	return ds
}

// formerDependents sets Former of the removed units. A unit that does not depend on them any more
// has another unit file.
func (f *finder) formerDependents(ctx context.Context, c *git.Changes) {
	if len(f.removed) == 0 {
		return
	}
	top := git.Root(f.s.Root)
	tree, err := f.Checkouts.Add(ctx, f.tools.Git, f.tools.Worktrees, top, c.From)
	if err != nil {
		return // restoreDeleted reported it
	}
	for _, u := range slices.Clone(f.Units) {
		rel, err := filepath.Rel(top, u.Path)
		if u.Removed || err != nil || !c.Files[u.Path] {
			continue
		}
		path := filepath.Join(tree, rel)
		if _, err := os.Stat(path); err != nil {
			continue // a new unit
		}
		before, _ := f.loader.Load(f.loader.Task(ctx), path) // a unit that could not be read had no dependencies
		for _, in := range before {
			for _, edge := range f.ask(ctx, &Unit{Unit: in}).edges {
				if r := f.byID[edge.ID]; r != nil && r.Removed && !slices.Contains(r.Former, u) {
					r.Former = append(r.Former, u)
				}
			}
		}
	}
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

// noteCommit records the commit in which a query found the unit u, which may be nil. Reports then
// contain the unit's path in the repository, as Terragrunt's reports do, which searches in a
// worktree.
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

// changed reports whether a unit differs between the commits of c.
func (m *matching) changed(c *git.Changes, u *Unit) bool {
	if u.Removed {
		return slices.ContainsFunc(c.Deleted, func(p string) bool {
			return isUnitName(filepath.Base(p), m.f.s.ConfigName) && m.f.Name(filepath.Dir(p)) == u.Name
		})
	}
	if m.touched(c)[u.Dir] {
		return true
	}
	if slices.ContainsFunc(m.files(m.of[u]), func(p string) bool { return c.Files[p] }) {
		return true
	}
	return slices.ContainsFunc(m.f.modules.dirs(m.ctx, u), func(dir string) bool { return c.Dirs[dir] })
}

// touched returns the directories of units with a changed file. Each file belongs to the unit in
// its nearest ancestor directory.
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
