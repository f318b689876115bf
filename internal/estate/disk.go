package estate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/fetch"
)

// lockFile is the dependency lock file.
const lockFile = ".terraform.lock.hcl"

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

// root is the folder that the package of the module is copied to.
func (p *place) root() string {
	if p.files.sub == "" {
		return p.dir
	}
	return strings.TrimSuffix(p.dir, string(filepath.Separator)+filepath.FromSlash(p.files.sub))
}

// makeFolder copies the module's package, the unit's files over the module, and
// the generated files over both.
func (p *place) makeFolder() error {
	root := p.root()
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	put := parts{}
	if p.files.unit != "" || p.unit.Module != "" { // the module has a source
		if err := put.tree(p.files.pkg, root, copyRules{}); err != nil {
			return err
		}
	}
	if from := p.files.unit; from != "" || p.unit.Module == "" {
		if from == "" {
			from = p.files.pkg
		}
		if err := put.tree(from, p.dir, p.files.copy); err != nil {
			return err
		}
	}
	p.meetHooks(put)
	if err := put.copy(p.edited); err != nil {
		return err
	}
	if err := p.writeGenerated(put); err != nil {
		return err
	}
	return forget(root, put)
}

func (p *place) writeGenerated(put parts) error {
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
		put[path] = part{}
		if p.edited.still(path) {
			continue
		}
		if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, b) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := atomicfile.WriteMode(path, b, 0o644); err != nil {
				return err
			}
		}
		if p.hooked() {
			put[path] = part{stamp: stampAt(path)}
		}
	}
	return nil
}

// parts are the files that belong to a folder, by path.
type parts map[string]part

// A part is a file that is copied, or one that is written where from is "".
type part struct {
	from  string
	mode  fs.FileMode
	stamp stamp // of the file when it is in place
}

// A stamp tells a version of a file from others without looking into it. The zero
// stamp is that of no file.
type stamp struct {
	Size  int64 `json:"size"`
	Nanos int64 `json:"nanos"` // since 1970, when it was changed
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime().UnixNano()} }

// stampAt is the stamp of the file at a path.
func stampAt(path string) stamp {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return stamp{}
	}
	return stampOf(info)
}

// tree adds the files below a folder that belong to a copy of it.
func (ps parts) tree(from, to string, rules copyRules) error {
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
		ps[filepath.Join(to, rel)] = part{path, info.Mode().Perm() | 0o200, stampOf(info)}
		return nil
	})
}

// copy puts the files that are copied in place. What is there with the same size and
// time is left, and so is what hooks made of a file.
func (ps parts) copy(edited edits) error {
	reflinks := true // until one fails
	for target, x := range ps {
		if stampAt(target) == x.stamp || edited.still(target) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if reflinks = reflinks && cloneFile(x.from, target, x.mode); !reflinks {
			if err := copyFile(x.from, target, x.mode); err != nil {
				return err
			}
		}
		at := time.Unix(0, x.stamp.Nanos)
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
func forget(root string, put parts) error {
	path := filepath.Join(root, manifestName)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.SplitSeq(string(old), "\n") {
		name := filepath.Join(root, line)
		if _, ok := put[name]; line != "" && filepath.IsLocal(line) && !ok {
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
	b, err := os.ReadFile(filepath.Join(p.dir, lockFile))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	target := filepath.Join(p.unit.Dir, lockFile)
	if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return atomicfile.WriteMode(target, b, 0o644)
}
