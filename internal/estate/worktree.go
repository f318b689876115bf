package estate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/filelock"
)

// # Units of other commits
//
// Units of a commit that is not checked out are read in a worktree of it, in the
// system's folder for temporary files. What a unit manages is the same wherever its
// files were read: local state, and the folder in which the unit runs, are those that
// it has where the repository itself is checked out (checkedOut).
//
// A worktree lies in a folder of its own beside a lock that its process holds. Where
// that was killed the lock is free, so the next run that checks a commit of the
// repository out knows that the worktree belongs to nobody, and removes it.

// The parts of the folder of a worktree.
const (
	treesPrefix = "terrace-worktree-"
	treeName    = "tree"
	treeLock    = "lock"
)

// Worktrees are those that the program has made and not removed yet. The zero
// Worktrees has none; its methods may be called concurrently.
type Worktrees struct {
	mu  sync.Mutex
	all map[string]*checkout // by folder
}

type checkout struct {
	git    gitIn // of the repository
	unlock func()
}

// reserve makes the folder that a worktree will be in, and says that it is taken.
func (ws *Worktrees) reserve(ctx context.Context, g gitIn) (string, error) {
	dir, err := os.MkdirTemp("", treesPrefix)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as git tells it
	}
	if err != nil {
		return "", err
	}
	unlock, err := filelock.Lock(ctx, filepath.Join(dir, treeLock))
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.all == nil {
		ws.all = map[string]*checkout{}
	}
	tree := filepath.Join(dir, treeName)
	ws.all[tree] = &checkout{g, unlock}
	return tree, nil
}

// remove removes a worktree, if that has not been done yet.
func (ws *Worktrees) remove(ctx context.Context, tree string) {
	ws.mu.Lock()
	c := ws.all[tree]
	delete(ws.all, tree)
	ws.mu.Unlock()
	if c != nil {
		c.git.discard(ctx, tree)
		c.unlock()
	}
}

// Remove removes all of them, for a program that ends before those who use them do.
func (ws *Worktrees) Remove(ctx context.Context) {
	ws.mu.Lock()
	trees := slices.Collect(maps.Keys(ws.all))
	ws.mu.Unlock()
	for _, tree := range trees {
		ws.remove(ctx, tree)
	}
}

// discard has git forget a worktree, and removes its folder.
func (g gitIn) discard(ctx context.Context, tree string) {
	_, _ = g.run(ctx, "worktree", "remove", "--force", "--force", tree)
	_ = os.RemoveAll(filepath.Dir(tree))
}

// sweep removes the worktrees of the repository that processes which are gone left
// behind. What is not sure to be one is left alone, and nothing that fails matters.
func (g gitIn) sweep(ctx context.Context) {
	text, _ := g.run(ctx, "worktree", "list", "--porcelain")
	at, end := context.WithCancel(ctx)
	end() // a lock is not waited for
	for line := range strings.Lines(text) {
		tree, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "worktree ")
		tree = filepath.FromSlash(tree)
		dir := filepath.Dir(tree)
		if !ok || filepath.Base(tree) != treeName || !strings.HasPrefix(filepath.Base(dir), treesPrefix) {
			continue
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			g.discard(ctx, tree)
			continue
		}
		lock := filepath.Join(dir, treeLock)
		if _, err := os.Stat(lock); err != nil {
			continue
		}
		if unlock, err := filelock.Lock(at, lock); err == nil {
			g.discard(ctx, tree)
			unlock()
		}
	}
}

// standIn makes the root a folder in a worktree of the commit that filters compare
// with, if that is another than what is checked out.
func (e *Estate) standIn(ctx context.Context, queries []query) diag.List {
	at := "" // the commit
	for _, q := range queries {
		for _, t := range q.terms {
			if t.kind != termGit {
				continue
			}
			_, to, err := commits(t.value)
			if err == nil {
				_, err = e.o.git().run(ctx, "rev-parse", "--git-dir") // says what is wrong if there is no repository
			}
			if err != nil {
				return badFilter(q.text, err.Error())
			}
			id, err := e.o.git().run(ctx, "rev-parse", "--verify", "--quiet", to+"^{commit}")
			switch {
			case err != nil:
				return badFilter(q.text, fmt.Sprintf("there is no commit %s", to))
			case at != "" && at != id:
				return badFilter(q.text, "the filters compare with different commits, and units are those of one; filter with one after the other")
			}
			at = id
		}
	}
	if at == "" {
		return nil
	}
	if head, err := e.o.git().run(ctx, "rev-parse", "HEAD"); err != nil || head == at {
		return nil
	}
	top := repository(e.o.Root)
	rel, err := filepath.Rel(top, e.o.Root)
	if err != nil || top == "" {
		return badFilter(at, "the working folder does not lie in the repository")
	}
	tree, err := e.worktree(ctx, at)
	if err == nil {
		_, err = os.Stat(filepath.Join(tree, rel))
	}
	if err != nil {
		return badFilter(at, err.Error())
	}
	e.o.repo, e.o.Root = e.o.Root, filepath.Join(tree, rel)
	for _, in := range []*string{&e.o.Look.DependentsIn, &e.o.Look.Boundary} {
		if rel, err := filepath.Rel(top, *in); *in != "" && err == nil && filepath.IsLocal(rel) {
			*in = filepath.Join(tree, rel)
		}
	}
	e.renew()
	return nil
}

// Elsewhere is the folder of a worktree that the estate's units were read in; "" if
// that is what is checked out.
func (e *Estate) Elsewhere() string {
	if e.o.repo == "" {
		return ""
	}
	return e.o.Root
}

// worktree checks a commit out beside the repository's own folder, once.
func (e *Estate) worktree(ctx context.Context, ref string) (string, error) {
	if dir := e.history.worktrees[ref]; dir != "" {
		return dir, nil
	}
	if e.history.worktrees == nil {
		e.history.worktrees, e.history.top = map[string]string{}, repository(e.o.Root)
		if e.o.Worktrees == nil {
			e.o.Worktrees = &Worktrees{}
		}
		e.o.git().sweep(ctx)
	}
	dir, err := e.o.Worktrees.reserve(ctx, e.o.git())
	if err != nil {
		return "", err
	}
	e.history.worktrees[ref] = dir
	_, err = e.o.git().run(ctx, "worktree", "add", "--quiet", "--detach", "--force", dir, ref)
	return dir, err
}

// checkedOut is a path, or a text with one, as it is where the repository is checked
// out: itself, unless it leads into a worktree.
func (h *history) checkedOut(path string) string {
	for _, dir := range h.worktrees {
		if path == dir {
			return h.top
		}
		path = strings.ReplaceAll(path, dir+string(filepath.Separator), h.top+string(filepath.Separator))
	}
	return path
}

// Close removes what was checked out for the estate, which may be nil.
func (e *Estate) Close(ctx context.Context) {
	if e == nil {
		return
	}
	for ref, dir := range e.history.worktrees {
		e.o.Worktrees.remove(context.WithoutCancel(ctx), dir)
		delete(e.history.worktrees, ref)
	}
}
