// Package copytree copies the files of directories into another directory, repeatedly: unchanged
// files are not copied again, files that the source no longer contains are deleted, and files
// from other programs are kept.
//
// Main types: Files, the files of a copy, and Rules, which select files of a source. The one
// rule: only files in the manifest of the directory are ever deleted.
package copytree

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/glob"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/unit"
)

// LockFile is the name of the dependency lock file.
const LockFile = ".terraform.lock.hcl"

// manifestName is the name of the file that lists the copied files. Files in the list that the
// module no longer contains are deleted, and no others.
const manifestName = ".terrace-manifest"

// WorkingName is the name of a marker file in each working directory that is a copy of a unit.
// Discovery skips directories that contain it, although they contain a unit file.
const WorkingName = ".terrace-working-dir"

// MarkWorking writes the marker file into dir, the working directory of a unit.
func MarkWorking(dir, unit string) error {
	if Working(dir) {
		return nil
	}
	text := "This directory is a copy. Terrace made it for the unit in " + unit + ", and makes it anew when it is missing.\n"
	return atomicfile.WriteMode(filepath.Join(dir, WorkingName), []byte(text), 0o644)
}

// Working reports whether a directory contains the marker file of working directories.
func Working(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, WorkingName))
	return err == nil && info.Mode().IsRegular()
}

// Rules selects the files of a unit's directory that are copied. Include and Exclude contain glob
// patterns.
type Rules struct {
	Include, Exclude []string
	All              bool // hidden files are copied too
}

// Takes reports whether a file is copied. Hidden files are only copied if they are known or
// included. errored.tfstate is not copied, because "state push" would leave the copy. rel uses
// slashes.
func (r Rules) Takes(rel string) bool {
	for _, g := range r.Exclude {
		if glob.Match(g, rel) {
			return false
		}
	}
	first, _, _ := strings.Cut(rel, "/")
	if first == ".terragrunt-cache" || first == ".terraform" || first == unit.StackDir || errored(rel) {
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

// errored reports whether a file contains a state that could not be saved, or one that was
// pushed since.
func errored(rel string) bool {
	return statemgr.IsErrored(strings.TrimSuffix(path.Base(rel), statemgr.PushedSuffix))
}

// Private reports whether a directory name is one in which programs store their own data.
func Private(name string) bool {
	switch name {
	case ".terragrunt-cache", ".terraform", ".terrace", ".git":
		return true
	}
	return false
}

// Files contains the files of a copy, by path.
type Files map[string]File

// A File is a file that is copied from another one, or that is written if From is "".
type File struct {
	From  string
	Mode  fs.FileMode
	Stamp Stamp // stamp of the copied file
}

// A Stamp identifies a version of a file without reading it. The zero Stamp means that there is
// no file.
type Stamp struct {
	Size  int64 `json:"size"`
	Nanos int64 `json:"nanos"` // modification time, in nanoseconds since 1970
}

func stampOf(info fs.FileInfo) Stamp { return Stamp{info.Size(), info.ModTime().UnixNano()} }

// StampAt returns the stamp of the file at a path.
func StampAt(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return Stamp{}
	}
	return stampOf(info)
}

// Add adds the files below the directory from that the rules select, as copies below to. disk reads the
// directory and may be nil.
func (ps Files) Add(disk *readfile.Kept, from, to string, rules Rules) error {
	return disk.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
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
		info, err := disk.Stat(path)
		if err != nil || info.IsDir() {
			return nil // a broken link, or a link to a directory
		}
		ps[filepath.Join(to, rel)] = File{path, info.Mode().Perm() | 0o200, stampOf(info)}
		return nil
	})
}

// Copy copies the files below root. It skips files whose size and time are unchanged, and those
// for which keep returns true; keep may be nil. A directory that is a symbolic link is an error:
// a checkout can contain one, and its target must not be written.
func (ps Files) Copy(root string, keep func(path string) bool) error {
	reflinks := true // until cloning fails once
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

// cloneFile creates a copy that shares the blocks of the original, if the file system supports
// that. Either file may be changed without changing the other. If it returns false, nothing was
// created.
func cloneFile(from, to string, mode fs.FileMode) bool {
	src, err := os.Open(from)
	if err != nil {
		return false
	}
	defer src.Close()
	tmp := to + ".clone"
	_ = os.Remove(tmp) // file of a killed run, or a link from a checkout
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

// kept reports whether a file is never deleted, whatever the manifest contains: states, their
// backups and journals. A checkout can contain a manifest.
func kept(name string) bool {
	base := filepath.Base(name)
	return strings.HasSuffix(base, ".tfstate") || strings.Contains(base, ".tfstate.") || strings.Contains(base, ".journal")
}

// Forget deletes the files of the manifest that are not in put, and writes a new manifest. It
// follows no symbolic links and deletes no states.
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
