package git

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A patchRepo is a repository for tests.
type patchRepo struct {
	t       *testing.T
	dir     string
	environ []string
}

func newPatchRepo(t *testing.T) *patchRepo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &patchRepo{t, dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=1")}
	r.git("init", "-q")
	r.git("config", "user.name", "n")
	r.git("config", "user.email", "n@example.org")
	return r
}

func (r *patchRepo) git(args ...string) string {
	r.t.Helper()
	x := exec.Command("git", args...)
	x.Dir, x.Env = r.dir, r.environ
	out, err := x.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %s", args, out)
	}
	return string(out)
}

func (r *patchRepo) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *patchRepo) link(name, target string) {
	r.t.Helper()
	_ = os.MkdirAll(filepath.Dir(filepath.Join(r.dir, name)), 0o755) // the next call reports the error
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *patchRepo) remove(name string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *patchRepo) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "c")
}

// listing returns the files below a directory with their contents: those that links lead to, too.
func listing(t *testing.T, root string, walk func(string, fs.WalkDirFunc) error, stat func(string) (fs.FileInfo, error), list func(string) ([]fs.DirEntry, error), read func(string) ([]byte, error), real func(string) (string, error)) []string {
	t.Helper()
	var out []string
	err := walk(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		line := rel
		info, err := stat(path)
		at, realErr := real(path)
		to, _ := filepath.Rel(root, at)
		switch {
		case err != nil:
			line += " broken"
		case realErr != nil:
			line += " not real: " + realErr.Error()
		case info.IsDir():
			entries, err := list(path)
			line += fmt.Sprint(" directory ", to, err)
			for _, en := range entries {
				if en.Name() != ".git" {
					line += fmt.Sprint(" ", en.Name(), en.Type())
					if b, err := read(filepath.Join(path, en.Name())); err == nil {
						line += fmt.Sprintf(" %q", b)
					}
				}
			}
		default:
			b, err := read(path)
			line += fmt.Sprintf(" %s %o %d %q %v", to, info.Mode().Perm()&0o100, info.Size(), b, err)
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// check compares the files of HEAD as a patch shows them with a checkout. Ignored files of the working
// tree are copied into the checkout if their directory exists.
func (r *patchRepo) check() {
	r.t.Helper()
	repo := Repo{Dir: r.dir, Environ: sys.Env(r.environ), Exec: sys.Run}
	p, err := repo.PatchOf(r.t.Context(), r.dir, "HEAD", false)
	if err != nil || p == nil {
		r.t.Fatal(err)
	}
	tree := filepath.Join(r.t.TempDir(), "tree")
	r.git("worktree", "add", "-q", "--detach", "--force", tree, "HEAD")
	for _, name := range words(r.git("ls-files", "--others", "--ignored", "--exclude-standard", "-z")) {
		to := filepath.Join(tree, name)
		if _, err := os.Stat(filepath.Dir(to)); err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		if err == nil {
			err = os.WriteFile(to, b, 0o644)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	want := listing(r.t, tree, filepath.WalkDir, os.Stat, os.ReadDir, os.ReadFile, filepath.EvalSymlinks)
	got := listing(r.t, r.dir, p.WalkDir, p.Stat, p.ReadDir, func(path string) ([]byte, error) {
		text, disk, ok, err := p.Content(path)
		if ok {
			return text, err
		}
		return os.ReadFile(disk)
	}, p.EvalSymlinks)
	if !slices.Equal(got, want) {
		r.t.Errorf("the patch shows\n%s\nand the checkout\n%s\nThe index:\n%sThe status:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), r.git("ls-files", "--stage", "-v"), r.git("status", "--porcelain"))
	}
	r.git("worktree", "remove", "--force", tree)
}

// The files of a commit are those of a checkout, without a checkout.
func TestPatchOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(r *patchRepo) // before the commit
		after  func(r *patchRepo)
	}{
		{name: "equal"},
		{name: "a text", after: func(r *patchRepo) { r.write("d/a b.txt", "new") }},
		{name: "a staged text", after: func(r *patchRepo) { r.write("x.txt", "new"); r.git("add", ".") }},
		{name: "attributes", before: func(r *patchRepo) { r.write(".gitattributes", "*.txt text eol=crlf\n") }, after: func(r *patchRepo) { r.write("x.txt", "new\n"); r.write("d/a b.txt", "new\n") }},
		{name: "an ignored file", before: func(r *patchRepo) { r.write(".gitignore", "*.log\n") }, after: func(r *patchRepo) { r.write("d/x.log", "l"); r.write("x.txt", "new") }},
		{name: "a new file", after: func(r *patchRepo) { r.write("d/new.txt", "") }},
		{name: "a new directory", after: func(r *patchRepo) { r.write("e/f/new.txt", "") }},
		{name: "a new staged file", after: func(r *patchRepo) { r.write("d/new.txt", ""); r.git("add", ".") }},
		{name: "a removed file", after: func(r *patchRepo) { r.remove("x.txt") }},
		{name: "a removed directory", after: func(r *patchRepo) { r.remove("d") }},
		{name: "a renamed directory", after: func(r *patchRepo) { r.git("mv", "d", "e") }},
		{name: "no longer tracked", after: func(r *patchRepo) { r.git("rm", "-q", "--cached", "x.txt") }},
		{name: "a directory in place of a file", after: func(r *patchRepo) { r.remove("x.txt"); r.write("x.txt/y.txt", "y") }},
		{name: "a file in place of a directory", after: func(r *patchRepo) { r.remove("d"); r.write("d", "d") }},
		{name: "a link", before: func(r *patchRepo) { r.link("link", "x.txt"); r.link("to", "d") }, after: func(r *patchRepo) { r.write("x.txt", "new"); r.write("d/a b.txt", "new"); r.write("d/new.txt", "") }},
		{name: "another link", before: func(r *patchRepo) { r.link("to", "d"); r.write("e/y", "y") }, after: func(r *patchRepo) { r.remove("to"); r.link("to", "e") }},
		{name: "links through links", before: func(r *patchRepo) { r.link("one", "two/../d"); r.link("two", "d"); r.link("d/up", "..") }, after: func(r *patchRepo) { r.write("d/a b.txt", "new"); r.write("x.txt", "new") }},
		{name: "a cycle", before: func(r *patchRepo) { r.link("one", "two"); r.link("two", "one") }, after: func(r *patchRepo) { r.write("x.txt", "new") }},
		{name: "a new link", after: func(r *patchRepo) { r.link("link", "d"); r.link("d/other", "../x.txt") }},
		{name: "assumed to be unchanged", after: func(r *patchRepo) { r.write("x.txt", "new"); r.git("update-index", "--assume-unchanged", "x.txt") }},
		{name: "not checked out", after: func(r *patchRepo) { r.git("update-index", "--skip-worktree", "x.txt"); r.remove("x.txt") }},
		{name: "a directory with ignored files alone", before: func(r *patchRepo) { r.write(".gitignore", "*.log\n") }, after: func(r *patchRepo) {
			r.write("e/x.txt", "")
			r.write("e/x.log", "")
			r.remove("d")
			r.write("d/y.log", "")
		}},
		{name: "names with special characters", before: func(r *patchRepo) { r.write("a\nb", "1"); r.write("é \"x\"", "2") }, after: func(r *patchRepo) { r.write("a\nb", "3"); r.write("é \"x\"", "4") }},
		{name: "large and binary files", before: func(r *patchRepo) {
			r.write("large", strings.Repeat("0123456789abcde\n", largestFile/16+1))
			r.write("zero", "\x00\n\n")
		}, after: func(r *patchRepo) { r.write("large", "x"); r.write("zero", "x"); r.write("x.txt", "y") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newPatchRepo(t)
			r.write("d/a b.txt", "old\n\n")
			r.write("x.txt", "x\n")
			if c.before != nil {
				c.before(r)
			}
			r.commit()
			if c.after != nil {
				c.after(r)
			}
			r.check()
		})
	}
}

// A filter of git that fails is an error only for the file that has it.
func TestPatchOfFilterFails(t *testing.T) {
	t.Parallel()
	r := newPatchRepo(t)
	r.write(".gitattributes", "*.bin filter=fails\n")
	r.write("a.bin", "1")
	r.write("z.txt", "1")
	r.commit()
	r.write("a.bin", "2")
	r.write("z.txt", "2")
	r.git("config", "filter.fails.smudge", "false")
	r.git("config", "filter.fails.required", "true")
	r.git("config", "filter.fails.clean", "cat")
	p, err := Repo{Dir: r.dir, Environ: sys.Env(r.environ), Exec: sys.Run}.PatchOf(t.Context(), r.dir, "HEAD", true)
	if err != nil {
		t.Fatal(err)
	}
	if text, _, _, err := p.Content(filepath.Join(r.dir, "z.txt")); err != nil || string(text) != "1" {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, _, err := p.Content(filepath.Join(r.dir, "a.bin")); err == nil || !strings.Contains(err.Error(), "fails") {
		t.Error(err)
	}
}

// Beside the working tree of a sparse checkout, files that are not checked out are absent.
func TestPatchOfSparse(t *testing.T) {
	t.Parallel()
	r := newPatchRepo(t)
	r.write("in/x.txt", "1")
	r.write("out/y.txt", "1")
	r.commit()
	r.git("sparse-checkout", "set", "in")
	r.write("in/x.txt", "2")
	repo := Repo{Dir: r.dir, Environ: sys.Env(r.environ), Exec: sys.Run}
	for sparse, want := range map[bool]bool{true: false, false: true} {
		p, err := repo.PatchOf(t.Context(), r.dir, "HEAD", sparse)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _, _ := p.Content(filepath.Join(r.dir, "in/x.txt"))
		if _, err := p.Stat(filepath.Join(r.dir, "out/y.txt")); (err == nil) != want || string(text) != "1" {
			t.Errorf("sparse %v: %v, %q", sparse, err, text)
		}
	}
}

// The same, for random changes of random trees.
func TestPatchOfRandomTrees(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			r := newPatchRepo(t)
			r.write(".gitignore", "*.log\n.cache\n")
			name := func() string {
				parts := []string{"a", "b", "c.txt", "d"}
				out := parts[rnd.IntN(4)]
				for range rnd.IntN(3) {
					out = filepath.Join(out, parts[rnd.IntN(4)])
				}
				return out
			}
			clear := func(n string) { // what is in the way of a file
				up := ""
				for part := range strings.SplitSeq(n, string(filepath.Separator)) {
					up = filepath.Join(up, part)
					if info, err := os.Lstat(filepath.Join(r.dir, up)); err == nil && (up == n || !info.IsDir()) {
						r.remove(up)
					}
				}
			}
			change := func() {
				n := name()
				switch rnd.IntN(8) {
				case 0, 1, 2, 3:
					clear(n)
					r.write(n, fmt.Sprintln(rnd.IntN(100)))
				case 4:
					_ = os.RemoveAll(filepath.Join(r.dir, n)) // fails below a file
				case 5:
					clear(n)
					r.link(n, []string{"a", "../b", "../a/b", "c.txt", "../../d"}[rnd.IntN(5)])
				case 6:
					if info, err := os.Stat(filepath.Join(r.dir, filepath.Dir(n))); err == nil && info.IsDir() {
						r.write(filepath.Join(filepath.Dir(n), "x.log"), "ignored")
					}
				case 7:
					r.git("add", "-A")
				}
			}
			for range 12 {
				change()
			}
			r.commit()
			for range 4 {
				for range 1 + rnd.IntN(6) {
					change()
				}
				r.check()
			}
		})
	}
}
