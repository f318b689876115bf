package estate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/fetch"
)

// manifestName lists what was put into a working folder, so that what the module
// no longer has is taken out again, and nothing else ever is.
const manifestName = ".terrace-manifest"

// onDisk makes the working folder, once.
func (p *place) onDisk() diag.List {
	p.disk.Do(func() {
		if err := p.makeFolder(); err != nil {
			p.diskDs = diag.Errorf(nil, "Failed to make the working folder", "The folder %s, in which the module of the unit %s runs, cannot be made: %s.", p.dir, p.unit.Name, err)
		}
	})
	return p.diskDs
}

// makeFolder copies the module's package, the unit's files over the module, and
// the generated files over both.
func (p *place) makeFolder() error {
	root := strings.TrimSuffix(p.dir, string(filepath.Separator)+filepath.FromSlash(p.files.sub))
	if p.files.sub == "" {
		root = p.dir
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	put := map[string]bool{}
	if p.files.unit != "" || p.unit.Module != "" { // the module has a source
		if err := copyTree(p.files.pkg, root, copyRules{}, put); err != nil {
			return err
		}
	}
	if from := p.files.unit; from != "" || p.unit.Module == "" {
		if from == "" {
			from = p.files.pkg
		}
		if err := copyTree(from, p.dir, p.files.copy, put); err != nil {
			return err
		}
	}
	if err := p.writeGenerated(put); err != nil {
		return err
	}
	return forget(root, put)
}

func (p *place) writeGenerated(put map[string]bool) error {
	all := map[string][]byte{}
	for name, b := range p.files.generated {
		all[filepath.Join(p.dir, name)] = b
	}
	for name, b := range p.outside {
		all[name] = b
	}
	if p.backend != nil {
		all[filepath.Join(p.dir, p.backendAt)] = p.backend
	}
	for path, b := range all {
		if b == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			delete(put, path)
			continue
		}
		put[path] = true
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := atomicfile.WriteMode(path, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies the files below a folder that belong to a copy. What is there
// with the same size and time is left.
func copyTree(from, to string, rules copyRules, put map[string]bool) error {
	reflinks := true // until one fails
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		if !rules.takes(filepath.ToSlash(rel)) {
			if d.IsDir() && len(rules.include) == 0 {
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
		target := filepath.Join(to, rel)
		put[target] = true
		if old, err := os.Stat(target); err == nil && old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o200
		if reflinks = reflinks && cloneFile(path, target, mode); !reflinks {
			if err := copyFile(path, target, mode); err != nil {
				return err
			}
		}
		return os.Chtimes(target, info.ModTime(), info.ModTime())
	})
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
	dst, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
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
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return atomicfile.WriteMode(to, b, mode)
}

// forget removes what was put into the folder before and no longer belongs there.
func forget(root string, put map[string]bool) error {
	path := filepath.Join(root, manifestName)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.SplitSeq(string(old), "\n") {
		if name := filepath.Join(root, line); line != "" && filepath.IsLocal(line) && !put[name] {
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

// Dir makes the working folder of a unit on disk and tells its path.
func (e *Estate) Dir(u *Unit) (string, diag.List) {
	if u.place == nil {
		return "", diag.Errorf(nil, "Unit not prepared", "The unit %s was not prepared.", u.Name)
	}
	return u.place.dir, u.place.onDisk()
}

// keepLock copies a changed dependency lock file to the unit's folder, as
// Terragrunt does after init.
func (p *place) keepLock() error {
	if p.terraform != nil && !p.terraform.CopyLockFile || p.unit.Module != "" {
		return nil
	}
	const name = ".terraform.lock.hcl"
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	target := filepath.Join(p.unit.Dir, name)
	if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return atomicfile.WriteMode(target, b, 0o644)
}
