// Package git asks git what differs between two commits, and checks commits out beside
// what is checked out already.
//
// Main types: Repo, Changes, Worktrees and Checkouts. The one rule: nothing of what is
// checked out is touched, and what was made is removed again, by the next run if this one
// is killed.
package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A Repo is the git repository that a folder lies in.
type Repo struct {
	Dir     string // where git runs
	Environ sys.Env
	Exec    func(context.Context, sys.Command) error // nil: git cannot be run
	// Answers take what git says of commits, or have it where there is no repository. May be
	// nil.
	Answers *Answers
}

// Run runs git and returns what it prints.
func (r Repo) Run(ctx context.Context, args ...string) (string, error) {
	if r.Exec == nil {
		return "", fmt.Errorf("git cannot be run here")
	}
	var out, said sys.Buffer
	err := r.Exec(ctx, sys.Command{Path: "git", Args: args, Dir: r.Dir, Env: r.Environ, Stdout: &out, Stderr: &said})
	if err != nil {
		if why := strings.TrimSpace(said.String()); why != "" {
			return "", fmt.Errorf("git %s: %s", args[0], why)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Top is the root of the repository that a folder lies in, as the path of the folder
// begins, which may lead through links that git resolves.
func (r Repo) Top(ctx context.Context, dir string) (string, error) {
	if r.Answers.areGiven() {
		return Root(dir), nil
	}
	top, err := r.Run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return top, nil
	}
	rel, err := filepath.Rel(real, filepath.FromSlash(top))
	if err != nil {
		return top, nil
	}
	return filepath.Join(dir, rel), nil
}

// Root is the root of the repository that a folder lies in, found without git; "" if it
// lies in none.
func Root(dir string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// Commits are the two that A...B names; A alone means A...HEAD.
func Commits(text string) (from, to string, err error) {
	from, to, ok := strings.Cut(text, "...")
	if !ok {
		to = "HEAD"
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	if from == "" || to == "" || strings.HasPrefix(from, "-") || strings.HasPrefix(to, "-") {
		return "", "", fmt.Errorf("[%s] does not name two commits", text)
	}
	return from, to, nil
}

// Changes are what differs between two commits.
type Changes struct {
	From, To string // as written
	Files    map[string]bool
	Dirs     map[string]bool // folders with a changed file somewhere below
	Deleted  []string        // files that To has not
}

// Compare asks git what differs between the commits that text names, by paths below top.
// The two are compared themselves, as by Terragrunt; no common ancestor is looked for.
func (r Repo) Compare(ctx context.Context, text, top string) (*Changes, error) {
	from, to, err := Commits(text)
	if err != nil {
		return nil, err
	}
	c := &Changes{From: from, To: to, Files: map[string]bool{}, Dirs: map[string]bool{}}
	out, err := r.Answers.answer((*Record).diffs, text, func() (string, error) {
		return r.Run(ctx, "diff", "--name-status", "--no-renames", "-z", c.From, c.To, "--")
	})
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		path := filepath.Join(top, filepath.FromSlash(words[i+1]))
		c.Files[path] = true
		for dir := filepath.Dir(path); !c.Dirs[dir]; dir = filepath.Dir(dir) {
			c.Dirs[dir] = true
		}
		if words[i] == "D" {
			c.Deleted = append(c.Deleted, path)
		}
	}
	return c, nil
}

// Exists says what is wrong if there is no repository.
func (r Repo) Exists(ctx context.Context) error {
	if r.Answers.areGiven() {
		return nil
	}
	_, err := r.Run(ctx, "rev-parse", "--git-dir")
	return err
}

// Commit is the ID of the commit of a name.
func (r Repo) Commit(ctx context.Context, name string) (string, error) {
	return r.Answers.answer((*Record).commits, name, func() (string, error) {
		return r.Run(ctx, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	})
}

// Affected is what differs between the default branch and HEAD, in the words of Commits.
func (r Repo) Affected(ctx context.Context) (string, error) {
	return r.Answers.affected(func() (string, error) { return r.affected(ctx) })
}

func (r Repo) affected(ctx context.Context) (string, error) {
	if ref, err := r.Run(ctx, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"); err == nil {
		return ref + "...HEAD", nil
	}
	if _, err := r.Run(ctx, "rev-parse", "--git-dir"); err != nil {
		return "", err
	}
	for _, name := range [...]string{"main", "master"} {
		if _, err := r.Run(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+name); err == nil {
			return name + "...HEAD", nil
		}
	}
	return "", fmt.Errorf("the repository has no remote that says which branch is its default one, and no branch main or master; name the commit with --filter '[COMMIT...HEAD]'")
}
