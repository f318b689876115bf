package workcopy

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
)

// Make creates the working directory on disk. After a success, further calls do nothing.
func (d *UnitDirectory) Make() diag.List {
	return d.made.Local(struct{}{}, func() (diag.List, bool) {
		if err := d.make(); err != nil {
			return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to make the working directory", "The directory %s, in which the module of the unit in %s runs, cannot be made: %s.", d.Path, d.Unit.Dir, err), false
		}
		return nil, true
	})
}

// packageDir returns the directory to which the package of the module is copied.
func (d *UnitDirectory) packageDir() string {
	if d.Files.Sub == "" {
		return d.Path
	}
	return strings.TrimSuffix(d.Path, string(filepath.Separator)+filepath.FromSlash(d.Files.Sub))
}

// make copies the package of the module, then the unit's files into the directory of the module,
// and then writes the generated files.
func (d *UnitDirectory) make() error {
	root := d.packageDir()
	if err := cmp.Or(inside.Below(root, d.roots...), inside.Check(root, d.Path)); err != nil {
		return err
	}
	if err := os.MkdirAll(d.Path, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{root, d.Path} { // the package may contain copies of other units
		if err := copytree.MarkWorking(dir, d.Unit.Dir); err != nil {
			return err
		}
	}
	put := copytree.Files{}
	if d.Files.Unit != "" || d.Unit.Module != "" { // the module is not in the unit's directory
		if err := put.Add(d.read, d.Files.Package, root, d.Files.Copy); err != nil {
			return err
		}
	}
	if from := d.Files.Unit; from != "" || d.Unit.Module == "" {
		if from == "" {
			from = d.Files.Package
		}
		if err := put.Add(d.read, from, d.Path, d.Files.Copy); err != nil {
			return err
		}
	}
	d.recall(put)
	if err := put.Copy(root, d.hooked.edited.unchanged); err != nil {
		return err
	}
	if err := d.writeGenerated(put); err != nil {
		return err
	}
	return copytree.Forget(root, put)
}

func (d *UnitDirectory) writeGenerated(put copytree.Files) error {
	all := map[string][]byte{}
	for name, b := range d.Files.Generated {
		all[filepath.Join(d.Path, name)] = b
	}
	for name, b := range d.outside {
		all[name] = b
	}
	if d.backend != nil {
		all[filepath.Join(d.Path, d.backendAt)] = d.backend()
	}
	for path, b := range all {
		if b == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			delete(put, path)
			continue
		}
		put[path] = copytree.File{}
		if d.hooked.edited.unchanged(path) {
			continue
		}
		if old, err := readfile.Whole(path); err != nil || !bytes.Equal(old, b) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := atomicfile.WriteCopy(path, b, 0o644); err != nil {
				return err
			}
		}
		if d.HasHooks() {
			put[path] = copytree.File{Stamp: copytree.StampAt(path)}
		}
	}
	return nil
}

// KeepLock copies a changed dependency lock file to the unit's directory, as Terragrunt does
// after init.
func (d *UnitDirectory) KeepLock() diag.List {
	if err := d.keepLock(); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to keep the dependency lock file", "%s.", err)
	}
	return nil
}

func (d *UnitDirectory) keepLock() error {
	if d.Terraform != nil && !d.Terraform.CopyLockFile || d.Unit.Module != "" {
		return nil
	}
	b, err := d.read.Whole(filepath.Join(d.Path, copytree.LockFile))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	target := filepath.Join(d.Unit.Dir, copytree.LockFile)
	if old, err := d.read.Whole(target); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return atomicfile.WriteMode(target, b, 0o644)
}
