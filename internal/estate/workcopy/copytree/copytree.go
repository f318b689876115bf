// Package copytree copies the files of folders into another one, again and again: what
// is there already is not copied, what the source no longer has is removed, and whatever
// somebody else put there stays.
//
// Main types: Files, which belong to the folder, and Rules, which say what of a source
// counts. The one rule: only what stands in the manifest of the folder is ever removed.
package copytree

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/glob"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/unit"
)

// LockFile is the dependency lock file.
const LockFile = ".terraform.lock.hcl"

// manifestName lists what was put into a working folder, so that what the module
// no longer has is taken out again, and nothing else ever is.
const manifestName = ".terrace-manifest"

// WorkingName is a file in each working directory of a unit that is a copy. A copy of the
// unit's file lies beside it, which makes no unit of the folder.
const WorkingName = ".terrace-working-dir"

// MarkWorking says in a folder that it is the working directory of a unit.
func MarkWorking(dir, unit string) error {
	if Working(dir) {
		return nil
	}
	text := "This folder is a copy. Terrace made it for the unit in " + unit + ", and makes it anew when it is missing.\n"
	return atomicfile.WriteMode(filepath.Join(dir, WorkingName), []byte(text), 0o644)
}

// Working reports whether a folder says that it is the working directory of a unit.
func Working(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, WorkingName))
	return err == nil && info.Mode().IsRegular()
}

// Rules say which files of a unit's folder belong to the copy.
type Rules struct {
	Include, Exclude []string
	All              bool // hidden files too
}

// Takes reports whether a file belongs to the copy: hidden ones do only if they
// are known or asked for. rel has slashes.
func (r Rules) Takes(rel string) bool {
	for _, g := range r.Exclude {
		if glob.Match(g, rel) {
			return false
		}
	}
	first, _, _ := strings.Cut(rel, "/")
	if first == ".terragrunt-cache" || first == ".terraform" || first == unit.StackDir {
		return false
	}
	hidden := false
	for part := range strings.SplitSeq(rel, "/") {
		hidden = hidden || strings.HasPrefix(part, ".") && part != LockFile && part != ".tflint.hcl"
	}
	if !hidden || r.All {
		return true
	}
	return slices.ContainsFunc(r.Include, func(g string) bool {
		return glob.Match(g, rel) || strings.HasPrefix(rel, strings.TrimSuffix(g, "/")+"/")
	})
}

// Private reports whether a folder of a name is one in which programs keep what is
// theirs.
func Private(name string) bool {
	switch name {
	case ".terragrunt-cache", ".terraform", ".terrace", ".git":
		return true
	}
	return false
}

// Files are the files that belong to a folder, by path.
type Files map[string]File

// A File is one that is copied, or one that is written where From is "".
type File struct {
	From  string
	Mode  fs.FileMode
	Stamp Stamp // of the file when it is in place
}

// A Stamp tells a version of a file from others without looking into it. The zero
// stamp is that of no file.
type Stamp struct {
	Size  int64 `json:"size"`
	Nanos int64 `json:"nanos"` // since 1970, when it was changed
}

func stampOf(info fs.FileInfo) Stamp { return Stamp{info.Size(), info.ModTime().UnixNano()} }

// StampAt is the stamp of the file at a path.
func StampAt(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return Stamp{}
	}
	return stampOf(info)
}

// Add adds the files below a folder that belong to a copy of it.
func (ps Files) Add(from, to string, rules Rules) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		if !rules.Takes(filepath.ToSlash(rel)) {
			if d.IsDir() && len(rules.Include) == 0 {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			return nil // a link that leads nowhere, or to a folder
		}
		ps[filepath.Join(to, rel)] = File{path, info.Mode().Perm() | 0o200, stampOf(info)}
		return nil
	})
}

// Copy puts the files that are copied in place, below root. What is there with the same size
// and time is left, and so is what keep reports, which may be nil. A directory that is a link
// is an error: a checkout can bring one, and what it leads to must not be written.
func (ps Files) Copy(root string, keep func(path string) bool) error {
	reflinks := true // until one fails
	checked := map[string]bool{}
	for target, x := range ps {
		if StampAt(target) == x.Stamp || keep != nil && keep(target) {
			continue
		}
		if dir := filepath.Dir(target); !checked[dir] {
			if err := inside.Check(root, dir); err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			checked[dir] = true
		}
		if reflinks = reflinks && cloneFile(x.From, target, x.Mode); !reflinks {
			if err := copyFile(x.From, target, x.Mode); err != nil {
				return err
			}
		}
		at := time.Unix(0, x.Stamp.Nanos)
		if err := os.Chtimes(target, at, at); err != nil {
			return err
		}
	}
	return nil
}

// cloneFile makes a file that shares the blocks of another where the file system
// can do that: either may be written without changing the other. It reports
// whether that worked; nothing is left where it did not.
func cloneFile(from, to string, mode fs.FileMode) bool {
	src, err := os.Open(from)
	if err != nil {
		return false
	}
	defer src.Close()
	tmp := to + ".clone"
	_ = os.Remove(tmp) // what a killed run left, or a link that came with a checkout
	dst, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	done := fetch.Reflink(dst, src) && dst.Chmod(mode) == nil
	if done = dst.Close() == nil && done && os.Rename(tmp, to) == nil; !done {
		_ = os.Remove(tmp)
	}
	return done
}

func copyFile(from, to string, mode fs.FileMode) error {
	b, err := readfile.Whole(from)
	if err != nil {
		return err
	}
	return atomicfile.WriteCopy(to, b, mode)
}

// kept reports whether a name is never removed, whatever the manifest lists: a state, what
// belongs to it, and journals. A manifest can come with a checkout.
func kept(name string) bool {
	base := filepath.Base(name)
	return strings.HasSuffix(base, ".tfstate") || strings.Contains(base, ".tfstate.") || strings.Contains(base, ".journal")
}

// Forget removes what was put into the folder before and no longer belongs there, and
// lists what was put there now. It follows no link and removes no state.
func Forget(root string, put Files) error {
	path := filepath.Join(root, manifestName)
	root = filepath.Clean(root)
	old, err := readfile.Whole(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.SplitSeq(string(old), "\n") {
		name := filepath.Join(root, line)
		if _, ok := put[name]; line != "" && filepath.IsLocal(line) && !ok && !kept(line) && inside.Check(root, filepath.Dir(name)) == nil {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	var names []string
	for name := range put {
		if rel, err := filepath.Rel(root, name); err == nil && filepath.IsLocal(rel) {
			names = append(names, rel)
		}
	}
	slices.Sort(names)
	text := []byte(strings.Join(names, "\n") + "\n")
	if bytes.Equal(text, old) {
		return nil
	}
	return atomicfile.WriteMode(path, text, 0o644)
}
