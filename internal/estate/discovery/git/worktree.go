package git

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/filelock"
)

// # Worktrees
//
// A worktree of a commit lies in the system's folder for temporary files, in a folder of
// its own beside a lock that its process holds. Where that was killed the lock is free,
// so the next run that checks a commit of the repository out knows that the worktree
// belongs to nobody, and removes it.

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
	git    Repo // of the repository
	unlock func()
}

// reserve makes the folder that a worktree will be in, and says that it is taken.
func (ws *Worktrees) reserve(ctx context.Context, g Repo) (string, error) {
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

// removeOne removes a worktree, if that has not been done yet.
func (ws *Worktrees) removeOne(ctx context.Context, tree string) {
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
		ws.removeOne(ctx, tree)
	}
}

// discard has git forget a worktree, and removes its folder.
func (r Repo) discard(ctx context.Context, tree string) {
	if !r.Answers.areGiven() {
		_, _ = r.Run(ctx, "worktree", "remove", "--force", "--force", tree)
	}
	_ = os.RemoveAll(filepath.Dir(tree))
}

// sweep removes the worktrees of the repository that processes which are gone left
// behind. What is not sure to be one is left alone, and nothing that fails matters.
func (r Repo) sweep(ctx context.Context) {
	text, _ := r.Run(ctx, "worktree", "list", "--porcelain")
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
			r.discard(ctx, tree)
			continue
		}
		lock := filepath.Join(dir, treeLock)
		if _, err := os.Stat(lock); err != nil {
			continue
		}
		if unlock, err := filelock.Lock(at, lock); err == nil {
			r.discard(ctx, tree)
			unlock()
		}
	}
}
