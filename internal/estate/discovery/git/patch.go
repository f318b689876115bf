package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// Limits of the contents of a commit that are read in advance, in bytes. Other files are read when
// they are needed, each by a process of git.
const (
	largestFile = 4 << 20
	mostBytes   = 256 << 20
)

// PatchOf returns the difference between the working tree with the root top and a commit: the files as
// a checkout of the commit would write them, and those that it would not contain. Files that git
// ignores are the same in both, and so are submodules of the same commit. Other submodules are empty
// directories. sparse omits the files that a sparse checkout does not write, because the working tree
// lacks them too.
func (r Repo) PatchOf(ctx context.Context, top, commit string, sparse bool) (*readfile.Patch, error) {
	r.Dir = top
	r.Environ = append(r.Environ[:len(r.Environ):len(r.Environ)], "GIT_OPTIONAL_LOCKS=0") // so that the index is not written
	d := &difference{Patch: readfile.NewPatch(top), repo: r, top: top, sparse: sparse, left: map[string]int{}, read: map[string]*contents{}}
	questions := [...][]string{
		{"ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z"},
		{"ls-files", "--modified", "-z"},
		{"ls-files", "--stage", "-v", "-z"},
		{"diff", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=dirty", commit, "--"},
	}
	type answer struct {
		words []string
		err   error
	}
	answers := parallel.Map(len(questions), len(questions), func(i int) answer {
		out, err := r.Run(ctx, questions[i]...)
		return answer{words(out), err}
	})
	for _, a := range answers {
		if a.err != nil {
			return nil, a.err
		}
	}
	d.untracked(answers[0].words, answers[1].words)
	d.tracked(answers[2].words)
	if err := d.changed(ctx, answers[3].words, commit); err != nil {
		return nil, err
	}
	d.emptyDirs()
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	return d.Patch, nil
}

// A difference builds a patch. Names are relative to the root, with slashes.
type difference struct {
	*readfile.Patch
	repo Repo
	top  string
	// sparse omits the files in omitted, which the working tree lacks.
	sparse  bool
	omitted map[string]bool
	left    map[string]int // number of files of the commit below each directory
	gone    []string       // files of the working tree that the commit does not contain
	links   []string       // tracked symbolic links
	// unsure contains tracked files that "git diff" does not compare with the working tree.
	unsure map[string]bool
	put    []string // regular files of the commit that differ
	ids    []string // their objects
	read   map[string]*contents
}

func (d *difference) path(name string) string { return filepath.Join(d.top, filepath.FromSlash(name)) }

// count adds n files of the commit to the directories above a name.
func (d *difference) count(name string, n int) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		d.left[dir] += n
	}
}

// words splits output of git with the option -z.
func words(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// untracked hides the files that git neither tracks nor ignores. Git does not list the files of a directory
// that is in the place of a tracked file; such files are among the modified ones.
func (d *difference) untracked(others, modified []string) {
	hide := func(name string) {
		d.Hide(d.path(name))
		d.gone = append(d.gone, name)
	}
	for _, name := range others {
		hide(strings.TrimSuffix(name, "/"))
	}
	for _, name := range modified {
		if info, err := os.Lstat(d.path(name)); err == nil && info.IsDir() {
			hide(name)
		}
	}
}

// tracked reads the list of the tracked files.
func (d *difference) tracked(entries []string) {
	last := ""
	for _, entry := range entries {
		// The form is "TAG MODE ID STAGE\tNAME". H is the tag of files that are neither ignored by
		// "git diff" nor missing from a sparse checkout.
		what, name, _ := strings.Cut(entry, "\t")
		if name == last {
			continue // a file with several stages, in a merge
		}
		last = name
		tag, mode, _ := strings.Cut(what, " ")
		if d.sparse && (tag == "S" || tag == "s") {
			if _, err := os.Lstat(d.path(name)); err != nil {
				if d.omitted == nil {
					d.omitted = map[string]bool{}
				}
				d.omitted[name] = true
				continue
			}
		}
		d.count(name, 1)
		if tag != "H" {
			if d.unsure == nil {
				d.unsure = map[string]bool{}
			}
			d.unsure[name] = true
		} else if strings.HasPrefix(mode, linkMode+" ") {
			d.links = append(d.links, name)
		}
	}
}

// Modes of objects.
const (
	linkMode      = "120000"
	submoduleMode = "160000"
	noMode        = "000000"
)

// changed adds the differences between the commit and the working tree, which all contains in the form of
// "git diff".
func (d *difference) changed(ctx context.Context, all []string, commit string) error {
	changed := map[string]bool{}
	var links [][2]string // names and objects
	add := func(mode, id, name string) {
		switch mode {
		case noMode:
			d.Hide(d.path(name))
			d.gone = append(d.gone, name)
			d.count(name, -1)
		case linkMode:
			links = append(links, [2]string{name, id})
		case submoduleMode:
			d.PutDir(d.path(name))
		default:
			d.put, d.ids = append(d.put, name), append(d.ids, id)
			d.read[name] = &contents{mode: fileMode(mode)}
		}
	}
	for i := 0; i+1 < len(all); i += 2 {
		// The form is ":MODE MODE ID ID STATUS", with the file in the commit first.
		what := strings.Fields(strings.TrimPrefix(all[i], ":"))
		if len(what) != 5 {
			return fmt.Errorf("git diff: unexpected output %q", all[i])
		}
		name := all[i+1]
		if what[4] == "U" { // in a merge
			if d.unsure == nil {
				d.unsure = map[string]bool{}
			}
			d.unsure[name] = true
		}
		if d.unsure[name] || d.omitted[name] || changed[name] {
			continue
		}
		changed[name] = true
		if what[4] == "D" {
			d.count(name, 1)
		}
		add(what[0], what[2], name)
	}
	if len(d.unsure) > 0 {
		out, err := d.repo.Run(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, entry := range words(out) { // "MODE TYPE ID\tNAME"
			what, name, _ := strings.Cut(entry, "\t")
			if f := strings.Fields(what); d.unsure[name] && len(f) == 3 {
				have[name] = true
				add(f[0], f[2], name)
			}
		}
		for name := range d.unsure {
			if !have[name] {
				add(noMode, "", name)
			}
		}
	}
	for _, x := range links {
		target, err := d.repo.bytes(ctx, "cat-file", "blob", x[1])
		if err != nil {
			return err
		}
		d.PutLink(d.path(x[0]), string(target))
		changed[x[0]] = true
	}
	real := map[string]bool{".": true}
	for _, name := range d.links {
		if changed[name] || !d.isDir(path.Dir(name), real) {
			continue
		}
		if target, err := os.Readlink(d.path(name)); err == nil {
			d.PutLink(d.path(name), target)
		}
	}
	return nil
}

// isDir reports whether a name is a directory of the working tree, which no symbolic link leads to.
func (d *difference) isDir(name string, known map[string]bool) bool {
	is, ok := known[name]
	if !ok {
		info, err := os.Lstat(d.path(name))
		is = err == nil && info.IsDir() && d.isDir(path.Dir(name), known)
		known[name] = is
	}
	return is
}

// fileMode returns the permissions of a regular file with a mode of git.
func fileMode(mode string) fs.FileMode {
	if mode == "100755" {
		return 0o755
	}
	return 0o644
}

// emptyDirs hides directories in which the commit has no file. On disk, they may contain files that git
// ignores.
func (d *difference) emptyDirs() {
	hidden := map[string]bool{}
	for _, name := range d.gone {
		for dir := path.Dir(name); dir != "." && !hidden[dir] && d.left[dir] <= 0; dir = path.Dir(dir) {
			hidden[dir] = true
			d.Hide(d.path(dir))
		}
	}
}

// contents is the content of a file of the commit.
type contents struct {
	mode fs.FileMode
	text []byte
	have bool // text was read in advance
}

// load reads the contents of the files that differ, with one process of git.
func (d *difference) load(ctx context.Context) error {
	for i, name := range d.put {
		id, x := d.ids[i], d.read[name]
		d.Put(d.path(name), x.mode, func() ([]byte, error) {
			if x.have {
				return x.text, nil
			}
			return d.repo.bytes(context.WithoutCancel(ctx), "cat-file", "--filters", "--path="+name, id)
		})
	}
	// With filters, the sizes that git prints are those without filters. So the end of each content is
	// marked with the message about an object that does not exist.
	end := "end-" + rand.Text()
	var in bytes.Buffer
	w := &contentsWriter{end: []byte("\n" + end + " missing\n"), left: mostBytes}
	for i, name := range d.put {
		if strings.ContainsAny(name, "\n\r") {
			continue // the format has no quotes
		}
		fmt.Fprintf(&in, "%s %s\n%s x\n", d.ids[i], name, end)
		w.to = append(w.to, d.read[name])
	}
	if len(w.to) == 0 {
		return nil
	}
	if d.repo.Exec == nil {
		return fmt.Errorf("git cannot be run here")
	}
	// A filter that fails for one file ends the process. The other files are then read when they are
	// needed, and only a file that is needed causes an error.
	var said sys.Buffer
	_ = d.repo.Exec(ctx, sys.Command{Path: "git", Args: []string{"cat-file", "--batch", "--filters"}, Dir: d.repo.Dir, Env: d.repo.Environ, Stdin: &in, Stdout: w, Stderr: &said})
	return ctx.Err()
}

// A contentsWriter splits the output of "git cat-file --batch". Each content follows a line with its
// object, and ends with the marker end.
type contentsWriter struct {
	end  []byte
	to   []*contents // of the next contents
	left int         // number of bytes that are kept
	buf  []byte
	over bool // the content is too large, and buf contains only its end
}

// Write implements [io.Writer].
func (w *contentsWriter) Write(p []byte) (int, error) {
	from := max(0, len(w.buf)-len(w.end))
	w.buf = append(w.buf, p...)
	rest := w.buf
	for {
		i := bytes.Index(rest[from:], w.end)
		if i < 0 {
			break
		}
		w.add(rest[:from+i])
		rest = rest[from+i+len(w.end):]
		from, w.over = 0, false
	}
	w.buf = append(w.buf[:0], rest...)
	if len(w.buf) > largestFile+len(w.end) || w.over {
		w.over = true
		w.buf = append(w.buf[:0], w.buf[max(0, len(w.buf)-len(w.end)):]...)
	}
	return len(p), nil
}

// add keeps a content with the line before it.
func (w *contentsWriter) add(b []byte) {
	if len(w.to) == 0 {
		return
	}
	x := w.to[0]
	w.to = w.to[1:]
	head, text, ok := bytes.Cut(b, []byte("\n"))
	if w.over || !ok || !bytes.Contains(head, []byte(" blob ")) || len(text) > w.left {
		return
	}
	w.left -= len(text)
	x.text, x.have = bytes.Clone(text), true
}
