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
	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// # Worktrees
//
// A worktree of a commit is in the system's directory for temporary files, in a directory of its
// own next to a lock file that its process holds. If the process is killed, the lock is released.
// The next run that checks out a commit of the repository then removes the worktree. A worktree
// that no repository knows is removed by the next run in any repository.

// Names in the directory of a worktree.
const (
	treesPrefix = "terrace-worktree-"
	treeName    = "tree"
	treeLock    = "lock"
)

// Worktrees contains the worktrees that the program has created and not removed yet. The zero
// value is empty. Its methods may be called concurrently.
type Worktrees struct {
	mu  sync.Mutex
	all map[string]*checkout // by directory
}

type checkout struct {
	git    Repo // repository of the worktree
	unlock func()
}

// reserve creates the parent directory of a worktree, locks it, and returns the path of the
// worktree.
func (ws *Worktrees) reserve(ctx context.Context, g Repo) (string, error) {
	dir, err := os.MkdirTemp("", treesPrefix)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // git reports paths without symbolic links
	}
	if err != nil {
		return "", err
	}
	unlock, err := filelock.Lock(ctx, filepath.Join(dir, treeLock))
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	sweepUnknown(ctx, filepath.Dir(dir))
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.all == nil {
		ws.all = map[string]*checkout{}
	}
	tree := filepath.Join(dir, treeName)
	ws.all[tree] = &checkout{g, unlock}
	return tree, nil
}

// removeOne removes a worktree, if it still exists.
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

// Remove removes all worktrees. It is for a program that has to end while they are used.
func (ws *Worktrees) Remove(ctx context.Context) {
	ws.mu.Lock()
	trees := slices.Collect(maps.Keys(ws.all))
	ws.mu.Unlock()
	for _, tree := range trees {
		ws.removeOne(ctx, tree)
	}
}

// discard unregisters a worktree from git, and deletes its directory.
func (r Repo) discard(ctx context.Context, tree string) {
	if !r.Answers.areGiven() {
		_, _ = r.Run(ctx, "worktree", "remove", "--force", "--force", tree)
	}
	_ = os.RemoveAll(filepath.Dir(tree))
}

// sweep removes worktrees of the repository whose processes have ended. It skips everything that
// is not certainly such a worktree, and ignores errors.
func (r Repo) sweep(ctx context.Context) {
	text, _ := r.Run(ctx, "worktree", "list", "--porcelain")
	at, end := context.WithCancel(ctx)
	end() // so that Lock does not wait
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
		ifEnded(at, dir, func() { r.discard(ctx, tree) })
	}
}

// sweepUnknown removes worktrees that no repository knows from the directory for temporary files,
// if their processes have ended. It ignores errors.
func sweepUnknown(ctx context.Context, temp string) {
	at, end := context.WithCancel(ctx)
	end()                                                          // so that Lock does not wait
	left, _ := filepath.Glob(filepath.Join(temp, treesPrefix+"*")) // the pattern is valid
	for _, dir := range left {
		if !registered(filepath.Join(dir, treeName)) {
			ifEnded(at, dir, func() { _ = os.RemoveAll(dir) })
		}
	}
}

// ifEnded calls discard if the process that holds the lock of a worktree's directory has ended.
func ifEnded(ctx context.Context, dir string, discard func()) {
	lock := filepath.Join(dir, treeLock)
	if st, err := os.Lstat(dir); err != nil || !st.IsDir() {
		return
	}
	if _, err := os.Lstat(lock); err != nil {
		return
	}
	if unlock, err := filelock.Lock(ctx, lock); err == nil {
		discard()
		unlock()
	}
}

// registered reports whether a repository knows a worktree. It does not if the process was killed
// before git created the worktree, or if the repository was deleted.
func registered(tree string) bool {
	text, err := readfile.Whole(filepath.Join(tree, ".git"))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok {
		return true // not certainly a worktree of a deleted repository
	}
	_, err = os.Stat(filepath.FromSlash(dir))
	return !errors.Is(err, fs.ErrNotExist)
}
