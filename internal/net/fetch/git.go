package fetch

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// fixedContent reports whether an address determines its content, for example by a commit.
func fixedContent(a Address) bool {
	u, err := url.Parse(a.URL)
	if err != nil {
		return false
	}
	q := u.Query()
	switch a.Getter {
	case "git", "hg":
		return isCommit(q.Get("ref"))
	case "oci":
		return q.Get("digest") != ""
	}
	return q.Get("checksum") != ""
}

func isCommit(ref string) bool {
	return (len(ref) == 40 || len(ref) == 64) && strings.Trim(ref, "0123456789abcdef") == ""
}

// repo is a parsed git address.
type repo struct {
	url   string
	ref   string
	depth int
	env   sys.Env
}

// git clones a repository. It first requests only the commit that the address names. If
// the server or the form of the reference does not allow this, it clones everything.
func (w *work) git(ctx context.Context, dir string) (string, error) {
	rp, err := w.repo()
	if err != nil {
		return "", err
	}
	if w.old != "" && rp.depth == 0 {
		if at, err := w.remoteCommit(ctx, rp); err == nil && at == w.old {
			return at, nil
		}
	}
	quick := w.shallow
	if path, ok := strings.CutPrefix(rp.url, "file://"); ok {
		quick = func(ctx context.Context, rp repo, dir string) error { return w.borrow(ctx, rp, path, dir) }
	}
	if err := quick(ctx, rp, dir); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		if err := empty(dir); err != nil {
			return "", err
		}
		if err := w.full(ctx, rp, dir); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".gitmodules")); err == nil {
		// Their URLs may be relative to that of the remote repository.
		if _, err := w.runGit(ctx, rp, dir, "config", "remote.origin.url", rp.url); err != nil {
			return "", err
		}
		if _, err := w.runGit(ctx, rp, dir, "submodule", "update", "--quiet", "--init", "--recursive"); err != nil {
			return "", err
		}
		if err := dropNestedGit(dir); err != nil {
			return "", err
		}
	}
	return headCommit(dir)
}

// headCommit returns the commit of a detached HEAD.
func headCommit(dir string) (string, error) {
	text, err := readfile.Whole(filepath.Join(dir, ".git", "HEAD"))
	if commit := strings.TrimSpace(string(text)); err == nil && isCommit(commit) {
		return commit, nil
	}
	return "", err // HEAD is a branch: another git process is not worth its time
}

func (w *work) repo() (repo, error) {
	u, err := url.Parse(w.a.URL)
	if err != nil {
		return repo{}, err
	}
	q := u.Query()
	rp := repo{ref: q.Get("ref"), env: w.Env}
	if d := q.Get("depth"); d != "" {
		if rp.depth, err = strconv.Atoi(d); err != nil || rp.depth < 0 {
			return repo{}, fmt.Errorf("the depth parameter %q is not a number", d)
		}
	}
	if strings.HasPrefix(rp.ref, "-") {
		return repo{}, fmt.Errorf("the ref parameter %q is not a reference: it begins with a dash", rp.ref)
	}
	key := q.Get("sshkey")
	for _, own := range []string{"ref", "depth", "sshkey"} {
		q.Del(own)
	}
	u.RawQuery = q.Encode()
	rp.url = u.String()
	if u.Scheme == "file" {
		rp.url = "file://" + u.Path
	}
	if strings.HasPrefix(rp.url, "-") {
		return repo{}, fmt.Errorf("%q is not the URL of a repository", rp.url)
	}
	if key != "" {
		if rp.env, err = w.sshKey(key); err != nil {
			return repo{}, err
		}
	}
	if _, set := rp.env.Lookup("GIT_TERMINAL_PROMPT"); !set {
		rp.env = rp.env.With("GIT_TERMINAL_PROMPT=0")
	}
	for _, bound := range [...]string{"GIT_HTTP_LOW_SPEED_LIMIT=1000", "GIT_HTTP_LOW_SPEED_TIME=60"} { // bytes per second; seconds
		if name, _, _ := strings.Cut(bound, "="); rp.env.Get(name) == "" {
			rp.env = rp.env.With(bound)
		}
	}
	// These variables are set if a git hook runs Terrace. git would use that repository.
	rp.env = rp.env.Without("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX")
	return rp, nil
}

// sshKey writes the key of the sshkey parameter to a file and returns the environment for ssh.
func (w *work) sshKey(text string) (sys.Env, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the sshkey parameter is not in base64")
	}
	file := filepath.Join(w.tmp, "key")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, err
	}
	ssh := w.Env.Get("GIT_SSH_COMMAND")
	if ssh == "" {
		ssh = "ssh"
	}
	return w.Env.With("GIT_SSH_COMMAND=" + ssh + " -i '" + file + "' -o IdentitiesOnly=yes"), nil
}

func (w *work) remoteCommit(ctx context.Context, rp repo) (string, error) {
	ref := rp.ref
	if ref == "" {
		ref = "HEAD"
	}
	if isCommit(ref) {
		return ref, nil
	}
	out, err := w.runGit(ctx, rp, w.tmp, "ls-remote", "--quiet", "--", rp.url, ref, ref+"^{}")
	if err != nil {
		return "", err
	}
	found := make(map[string]string)
	for _, line := range strings.Split(out, "\n") {
		if sum, name, ok := strings.Cut(line, "\t"); ok {
			found[name] = sum
		}
	}
	for _, name := range []string{ref + "^{}", ref, "refs/tags/" + ref + "^{}", "refs/tags/" + ref, "refs/heads/" + ref} {
		if sum := found[name]; sum != "" {
			return sum, nil
		}
	}
	return "", fmt.Errorf("no reference %q", ref)
}

// shallow fetches only the requested commit.
func (w *work) shallow(ctx context.Context, rp repo, dir string) error {
	ref := rp.ref
	if ref == "" {
		ref = "HEAD"
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"fetch", w.telling(), "--no-tags", "--depth", strconv.Itoa(max(rp.depth, 1)), "--", rp.url, ref},
		{"checkout", "--quiet", "--detach", "FETCH_HEAD"},
	} {
		if _, err := w.runGit(ctx, rp, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// borrow checks out from a repository on this machine without copying its objects.
func (w *work) borrow(ctx context.Context, rp repo, path, dir string) error {
	if _, err := w.runGit(ctx, rp, w.tmp, "clone", "--quiet", "--shared", "--no-checkout", "--", path, dir); err != nil {
		return err
	}
	return w.checkout(ctx, rp, dir)
}

// full clones the whole repository and looks up the reference in the clone.
func (w *work) full(ctx context.Context, rp repo, dir string) error {
	if _, err := w.runGit(ctx, rp, w.tmp, "clone", w.telling(), "--no-checkout", "--", rp.url, dir); err != nil {
		return err
	}
	return w.checkout(ctx, rp, dir)
}

func (w *work) checkout(ctx context.Context, rp repo, dir string) error {
	if rp.ref == "" {
		_, err := w.runGit(ctx, rp, dir, "checkout", "--quiet", "--detach", "HEAD", "--")
		return err
	}
	var first error
	for _, name := range []string{rp.ref, "refs/remotes/origin/" + rp.ref, "refs/tags/" + rp.ref} {
		_, err := w.runGit(ctx, rp, dir, "checkout", "--quiet", "--detach", name, "--")
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// runGit runs git and returns its trimmed standard output. An error contains its
// standard error.
func (w *work) runGit(ctx context.Context, rp repo, dir string, args ...string) (string, error) {
	// The repository is temporary: durability and maintenance are turned off.
	own := []string{"-c", "core.fsync=none", "-c", "gc.auto=0", "-c", "fetch.unpackLimit=1", "-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main"}
	return w.command(ctx, "git", rp.env, dir, append(own, args...)...)
}

func (w *work) command(ctx context.Context, program string, env sys.Env, dir string, args ...string) (string, error) {
	if w.Run == nil {
		return "", fmt.Errorf("%s cannot be started here", program)
	}
	var out, problem bytes.Buffer
	m := &meter{w: w, rest: &problem}
	err := w.Run(ctx, sys.Command{Path: program, Args: args, Dir: dir, Env: env, Stdout: &out, Stderr: m, Foreground: true})
	m.flush()
	if err == nil {
		return strings.TrimSpace(out.String()), nil
	}
	if ctx.Err() != nil { // the output of a killed process is no reason
		return "", fmt.Errorf("%s: %w", program, errors.Join(sys.ErrInterrupted, ctx.Err()))
	}
	if _, ran := sys.ExitCode(err); !ran {
		return "", fmt.Errorf("cannot run %s: %w", program, err)
	}
	text := strings.TrimSpace(problem.String())
	if len(text) > 2000 {
		text = text[:2000] + "…"
	}
	if u, perr := url.Parse(w.a.URL); perr == nil {
		if pw, ok := u.User.Password(); ok && pw != "" {
			text = strings.ReplaceAll(text, pw, "(hidden)")
		}
	}
	return "", &commandError{fmt.Sprintf("%s %s failed: %s", program, verb(args), text), text}
}

// verb returns the git command among the arguments.
func verb(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

// commandError is an error that git or hg reported.
type commandError struct{ msg, text string }

func (e *commandError) Error() string { return e.msg }

// Unwrap returns a *url.Error if the server could not be reached, so that the cached package is used.
func (e *commandError) Unwrap() error {
	for _, s := range []string{"does not appear", "not found", "Permission denied", "Authentication failed", "terminal prompts disabled"} {
		if strings.Contains(e.text, s) {
			return nil
		}
	}
	for _, s := range []string{"Could not resolve host", "Failed to connect", "Could not connect", "unable to access", "Connection refused", "Connection timed out", "Could not read from remote repository"} {
		if strings.Contains(e.text, s) {
			return &url.Error{Op: "git", Err: errors.New("unreachable")}
		}
	}
	return nil
}

func empty(dir string) error {
	if err := removeAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// dropNestedGit deletes the .git files of submodules.
func dropNestedGit(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && filepath.Dir(path) != dir {
			if err := removeAll(path); err != nil {
				return err
			}
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		return nil
	})
}

// hg clones a Mercurial repository.
func (w *work) hg(ctx context.Context, dir string) error {
	u, err := url.Parse(w.a.URL)
	if err != nil {
		return err
	}
	q := u.Query()
	rev := q.Get("rev")
	q.Del("rev")
	u.RawQuery = q.Encode()
	where := u.String()
	if strings.HasPrefix(where, "-") || strings.HasPrefix(rev, "-") {
		return errors.New("the address of the repository begins with a dash")
	}
	if err := os.Remove(dir); err != nil {
		return err
	}
	if _, err := w.command(ctx, "hg", w.Env, w.tmp, "clone", "--noupdate", where, dir); err != nil {
		return err
	}
	args := []string{"update"}
	if rev != "" {
		args = append(args, "--rev", rev)
	}
	_, err = w.command(ctx, "hg", w.Env, dir, args...)
	return err
}
