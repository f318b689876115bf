package git

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
)

// Checkouts contains the commits of one repository that are checked out in worktrees. The zero
// value is empty. Its methods must not be called concurrently, except CheckedOut after the last
// Add.
type Checkouts struct {
	all   map[string]string // worktrees by commit
	top   string            // root of the repository
	trees *Worktrees
}

// Add checks a commit out, once, and returns its worktree. top is the root of the repository.
func (c *Checkouts) Add(ctx context.Context, r Repo, trees *Worktrees, top, ref string) (string, error) {
	if dir := c.all[ref]; dir != "" {
		return dir, nil
	}
	if c.all == nil {
		c.all, c.top, c.trees = map[string]string{}, top, trees
		if !r.Answers.areGiven() {
			r.sweep(ctx)
		}
	}
	dir, err := trees.reserve(ctx, r)
	if err != nil {
		return "", err
	}
	c.all[ref] = dir
	if r.Answers.areGiven() {
		return dir, r.Answers.tree(ctx, ref, dir)
	}
	_, err = r.Run(ctx, "worktree", "add", "--quiet", "--detach", "--force", dir, ref)
	return dir, err
}

// Dirs returns the worktrees, by the commit as written in filters.
func (c *Checkouts) Dirs() map[string]string { return maps.Clone(c.all) }

// CheckedOut replaces paths in worktrees with the same paths in the repository's own directory.
// The argument may be a path or a text that contains one.
func (c *Checkouts) CheckedOut(path string) string {
	for _, dir := range c.all {
		if path == dir {
			return c.top
		}
		path = strings.ReplaceAll(path, dir+string(filepath.Separator), c.top+string(filepath.Separator))
	}
	return path
}

// Remove removes the worktrees.
func (c *Checkouts) Remove(ctx context.Context) {
	for ref, dir := range c.all {
		c.trees.removeOne(context.WithoutCancel(ctx), dir)
		delete(c.all, ref)
	}
}
