// Package git runs git to compare two commits and to check commits out in worktrees.
//
// Main types: Repo, Changes, Worktrees and Checkouts. The one rule: the user's working tree is
// never changed, and worktrees are removed again, by the next run if this one is killed.
package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A Repo is the git repository that contains a directory.
type Repo struct {
	Dir     string // working directory of git
	Environ sys.Env
	Exec    func(context.Context, sys.Command) error // nil means that git cannot be run
	// Answers records git's answers about commits, or replays them if there is no repository. It
	// may be nil.
	Answers *Answers
}

// Run runs git and returns its standard output without the last newline.
func (r Repo) Run(ctx context.Context, args ...string) (string, error) {
	out, err := r.bytes(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// bytes runs git and returns its whole standard output, or nil if it fails.
func (r Repo) bytes(ctx context.Context, args ...string) ([]byte, error) {
	if r.Exec == nil {
		return nil, fmt.Errorf("git cannot be run here")
	}
	var out, said sys.Buffer
	err := r.Exec(ctx, sys.Command{Path: "git", Args: args, Dir: r.Dir, Env: r.Environ, Stdout: &out, Stderr: &said})
	if err != nil {
		if why := strings.TrimSpace(said.String()); why != "" {
			return nil, fmt.Errorf("git %s: %s", args[0], why)
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return []byte(out.String()), nil
}

// Top returns the root of the repository that contains dir. The path keeps the symbolic links in
// dir, which git would resolve, unless one of them leads into the repository.
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
	out := filepath.Join(dir, rel)
	if same, err := filepath.EvalSymlinks(out); err != nil || same != filepath.FromSlash(top) {
		return top, nil // a link leads into the repository
	}
	return out, nil
}

// Root returns the root of the repository that contains dir, found without git, or "" if there is
// none.
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

// Commits returns the two commits of A...B. A alone means A...HEAD.
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

// Changes contains the differences between two commits.
type Changes struct {
	From, To string // commits as written in the filter
	Files    map[string]bool
	Dirs     map[string]bool // directories with a changed file below them
	Deleted  []string        // files in From that To does not contain
}

// Compare returns the differences between the commits in text, with paths below top. It compares
// the two commits themselves, as Terragrunt does, and not their merge base.
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

// Exists returns an error if there is no repository.
func (r Repo) Exists(ctx context.Context) error {
	if r.Answers.areGiven() {
		return nil
	}
	_, err := r.Run(ctx, "rev-parse", "--git-dir")
	return err
}

// Commit returns the ID of the commit with a name.
func (r Repo) Commit(ctx context.Context, name string) (string, error) {
	return r.Answers.answer((*Record).commits, name, func() (string, error) {
		return r.Run(ctx, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	})
}

// Affected returns the range from the default branch to HEAD, in the form that Commits parses.
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
