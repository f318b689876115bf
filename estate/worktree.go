package estate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// # Units of other commits
//
// Units of a commit that is not checked out are read in a worktree of it, in the
// system's folder for temporary files. What a unit manages is the same wherever its
// files were read: local state, and the folder in which the unit runs, are those that
// it has where the repository itself is checked out (checkedOut).

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
				_, err = e.o.git(ctx, "rev-parse", "--git-dir") // says what is wrong if there is no repository
			}
			if err != nil {
				return badFilter(q.text, err.Error())
			}
			id, err := e.o.git(ctx, "rev-parse", "--verify", "--quiet", to+"^{commit}")
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
	if head, err := e.o.git(ctx, "rev-parse", "HEAD"); err != nil || head == at {
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
	if in := e.o.Look.DependentsIn; in != "" {
		if rel, err := filepath.Rel(top, in); err == nil && filepath.IsLocal(rel) {
			e.o.Look.DependentsIn = filepath.Join(tree, rel)
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
	if dir := e.worktrees[ref]; dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "terrace-worktree-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	if e.worktrees == nil {
		e.worktrees, e.top = map[string]string{}, repository(e.o.Root)
	}
	e.worktrees[ref] = dir
	_, err = e.o.git(ctx, "worktree", "add", "--quiet", "--detach", "--force", dir, ref)
	return dir, err
}

// checkedOut is a path, or a text with one, as it is where the repository is checked
// out: itself, unless it leads into a worktree.
func (e *Estate) checkedOut(path string) string {
	for _, dir := range e.worktrees {
		if path == dir {
			return e.top
		}
		path = strings.ReplaceAll(path, dir+string(filepath.Separator), e.top+string(filepath.Separator))
	}
	return path
}

// Close removes what was checked out for the estate, which may be nil.
func (e *Estate) Close(ctx context.Context) {
	if e == nil {
		return
	}
	for ref, dir := range e.worktrees {
		_, _ = e.o.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", dir)
		_ = os.RemoveAll(dir)
		delete(e.worktrees, ref)
	}
}
