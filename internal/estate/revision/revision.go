// Package revision gives access to two revisions of a directory: two commits, a commit and the
// working tree, or two directories.
//
// Main types: Pair and Revision. The one rule: the user's working tree is never changed. The differences
// of a commit from the working tree are kept in memory, unless programs have to read its files. Then the
// commit is read from a worktree in the directory for temporary files, and paths in it are shown as
// those of the repository.
package revision

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
)

// A Revision is one revision of a directory.
type Revision struct {
	Name string // as shown: a commit, "the working tree" or a directory
	Dir  string // absolute; it may not exist in this revision
	ID   string // of the commit; "" for the working tree and for directories
	// Patch is the difference of the files from those on disk. nil means none.
	Patch *readfile.Patch

	root string // root of the files
	as   string // root of the files as it is shown: that of the repository
}

// A Pair contains the two revisions of a comparison. The caller must close it.
type Pair struct {
	Base, Head *Revision
	checkouts  git.Checkouts
	repo       git.Repo
	top        string
}

// WorkingTree is the name of the revision with the files of the working tree.
const WorkingTree = "the working tree"

// Open opens the revisions that words name, for a directory: nothing (the merge base of HEAD with
// the default branch, and the working tree), BASE, BASE..HEAD, BASE...HEAD, or two directories. BASE
// alone is compared with the working tree. "..." compares with the merge base, and a missing HEAD
// is the working tree. With checkout, the files of commits are on disk, and Revision.Patch is not set.
func Open(ctx context.Context, repo git.Repo, trees *git.Worktrees, dir string, words []string, checkout bool) (*Pair, error) {
	p := &Pair{repo: repo}
	if len(words) == 2 {
		for i, to := range []**Revision{&p.Base, &p.Head} {
			path := words[i]
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				return nil, fmt.Errorf("%s is not a directory; two revisions are written BASE..HEAD", words[i])
			}
			*to = &Revision{Name: words[i], Dir: path, root: path, as: path}
		}
		p.Base.as = p.Head.root // so that equal paths have equal names
		return p, nil
	}
	top, err := repo.Top(ctx, dir)
	if err != nil {
		return nil, err
	}
	p.top = top
	if rel, err := filepath.Rel(top, dir); err != nil || !filepath.IsLocal(rel) { // a link leads into the repository
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
	}
	text := ""
	if len(words) == 1 {
		text = words[0]
	} else if text, err = repo.Affected(ctx); err != nil {
		return nil, err
	} else {
		text = strings.TrimSuffix(text, "HEAD")
	}
	base, head, merge := text, "", false
	if a, b, ok := strings.Cut(text, "..."); ok {
		base, head, merge = a, b, true
	} else if a, b, ok := strings.Cut(text, ".."); ok {
		base, head = a, b
	}
	base, head = strings.TrimSpace(base), strings.TrimSpace(head)
	if base == "" || strings.HasPrefix(base, "-") || strings.HasPrefix(head, "-") {
		return nil, fmt.Errorf("%q does not name a revision", text)
	}
	if merge {
		head := cmp.Or(head, "HEAD")
		for _, name := range []string{base, head} {
			if _, err := p.named(ctx, name); err != nil {
				return nil, err
			}
		}
		id, err := repo.Run(ctx, "merge-base", "--end-of-options", base, head)
		if err != nil {
			return nil, fmt.Errorf("%s and %s have no common commit%s", base, head, p.shallow(ctx))
		}
		base = id
	}
	if p.Base, err = p.commit(ctx, trees, dir, base, checkout, head == ""); err == nil {
		if head == "" {
			p.Head = &Revision{Name: WorkingTree, Dir: dir, root: top, as: top}
		} else {
			p.Head, err = p.commit(ctx, trees, dir, head, checkout, false)
		}
	}
	if err != nil {
		p.Close(ctx)
		return nil, err
	}
	return p, nil
}

// named returns the ID of a commit, branch or tag.
func (p *Pair) named(ctx context.Context, name string) (id string, err error) {
	if id, err = p.repo.Commit(ctx, name); err != nil {
		return "", fmt.Errorf("there is no commit %s%s", name, p.shallow(ctx))
	}
	return id, nil
}

// shallow returns the end of an error about a commit that a shallow clone may lack, or "".
func (p *Pair) shallow(ctx context.Context) string {
	if out, err := p.repo.Run(ctx, "rev-parse", "--is-shallow-repository"); err != nil || strings.TrimSpace(out) != "true" {
		return ""
	}
	return "; this is a shallow clone, which lacks older commits and other branches: fetch them with git, such as \"git fetch --unshallow\""
}

// commit returns the revision of a commit. With checkout, it is checked out in a worktree. sparse is as
// for git.Repo.PatchOf.
func (p *Pair) commit(ctx context.Context, trees *git.Worktrees, dir, name string, checkout, sparse bool) (*Revision, error) {
	id, err := p.named(ctx, name)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(p.top, dir)
	if err != nil {
		return nil, err
	}
	shown := name
	if name == id {
		shown = id[:min(len(id), 12)]
	}
	if !checkout {
		patch, err := p.repo.PatchOf(ctx, p.top, id, sparse)
		if err != nil {
			return nil, err
		}
		return &Revision{Name: shown, Dir: dir, ID: id, Patch: patch, root: p.top, as: p.top}, nil
	}
	tree, err := p.checkouts.Add(ctx, p.repo, trees, p.top, id)
	if err != nil {
		return nil, err
	}
	return &Revision{Name: shown, Dir: filepath.Join(tree, rel), ID: id, root: tree, as: p.top}, nil
}

// Files returns the reader of the files of the revision. files reads those on disk and may be nil.
func (r *Revision) Files(files *readfile.Kept) *readfile.Kept {
	if r.Patch == nil {
		return files
	}
	return files.Patched(r.Patch)
}

// Below returns the revision of a directory below that of r, or of another path relative to it.
func (r *Revision) Below(name string) *Revision {
	n := *r
	n.Dir = filepath.Join(r.Dir, name)
	return &n
}

// Close removes the worktrees.
func (p *Pair) Close(ctx context.Context) { p.checkouts.Remove(ctx) }

// Rename replaces paths in the files of the revision by those that are shown. The argument is a path
// or a text that contains one.
func (r *Revision) Rename(text string) string {
	if r.root == r.as {
		return text
	}
	if text == r.root {
		return r.as
	}
	return strings.ReplaceAll(text, r.root+string(filepath.Separator), r.as+string(filepath.Separator))
}

// Located returns a text with the paths at which the files are found: those of the working tree for a commit. Those
// of a directory are its own, also if they are shown by those of another directory elsewhere.
func (r *Revision) Located(text string) string {
	if r.ID == "" {
		return text
	}
	return r.Rename(text)
}

// Inside returns the path in the revision of a path that is shown.
func (r *Revision) Inside(path string) string {
	rel, err := filepath.Rel(r.as, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(r.root, rel)
}

// A Blame is the commit that last changed a line.
type Blame struct{ Commit, Author, Date string }

// Blame returns the commit that last changed a line of a revision. path is the path that is shown.
// ok is false if the line is not committed.
func (p *Pair) Blame(ctx context.Context, r *Revision, path string, line int) (b Blame, ok bool) {
	if p.top == "" {
		return b, false
	}
	args := []string{"blame", "--porcelain", "-L", strconv.Itoa(line) + "," + strconv.Itoa(line)}
	if r.ID != "" {
		args = append(args, r.ID)
	}
	text, err := p.repo.Run(ctx, append(args, "--", r.Rename(path))...)
	if err != nil {
		return b, false
	}
	for i, l := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(l, " ")
		switch {
		case i == 0:
			b.Commit = word
		case word == "author":
			b.Author = rest
		case word == "author-time":
			b.Date = rest
		}
	}
	return b, strings.Trim(b.Commit, "0") != ""
}
