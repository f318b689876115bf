package workcopy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
	"github.com/terrace-iac/terrace/source"
)

// # Changes by hooks
//
// Sizes and times of files show which files hooks changed, both of the files that were copied and
// of the modules that init installed. The hooks of init run once per module, so their changes
// must persist. A file among those of init records that they ran, for which module, and which
// files they changed. A changed file is not copied again as long as it is as the hooks left it.
// Units without hooks have none of these costs.

// hookNotes is the path of the file with the notes, relative to the working directory. It is
// deleted together with the files of init.
const hookNotes = ".terraform/terrace-hooks.json"

// edits contains the stamps of files that hooks changed, by path.
type edits map[string]copytree.Stamp

// unchanged reports whether a file is as hooks left it. For a file that they deleted, it reports
// whether the file is still missing.
func (e edits) unchanged(path string) bool {
	left, ok := e[path]
	return ok && left == copytree.StampAt(path)
}

// hooked contains the data of a directory for its hooks. It is empty if the unit has none.
type hooked struct {
	anew      bool                      // the command is init, so its hooks run even if they ran before
	made      copytree.Files            // files that were copied to the directory
	key       string                    // digest of the module
	past      bool                      // the hooks of init ran for this module before
	edited    edits                     // files that they changed
	installed map[string]copytree.Stamp // installed modules before the first hook
}

// notes is the content of the file hookNotes.
type notes struct {
	Module string          `json:"module"`
	Edited map[string]note `json:"edited,omitempty"` // by path relative to the working directory
}

// A note records one file that hooks changed.
type note struct {
	Of copytree.Stamp `json:"of"` // stamp of the original file
	To copytree.Stamp `json:"to"`
}

// recall reads the notes of earlier hooks for the directory that consists of the files in put.
func (d *UnitDirectory) recall(put copytree.Files) {
	if !d.HasHooks() {
		return
	}
	if d.hooked.made, d.hooked.key = put, d.sum(put); d.hooked.anew {
		return
	}
	var n notes
	b, err := readfile.Whole(filepath.Join(d.Path, filepath.FromSlash(hookNotes)))
	if err != nil || json.Unmarshal(b, &n) != nil || n.Module != d.hooked.key {
		return // without notes for this module, the hooks run again
	}
	kept := edits{}
	for rel, x := range n.Edited {
		path := filepath.Join(d.Path, filepath.FromSlash(rel))
		now, ok := put[path]
		if kept[path] = x.To; !kept.unchanged(path) || ok && now.Stamp != x.Of {
			return // the changed file or its original differs, so the hooks run again
		}
	}
	d.hooked.past, d.hooked.edited = true, kept
}

// NoteHooks writes notes that the hooks of init ran and which files they changed.
func (d *UnitDirectory) NoteHooks() diag.List {
	n := notes{Module: d.hooked.key, Edited: map[string]note{}}
	for path, x := range d.hooked.made {
		now := copytree.StampAt(path)
		if rel, err := filepath.Rel(d.Path, path); err == nil && now != x.Stamp && filepath.Base(path) != copytree.LockFile {
			n.Edited[filepath.ToSlash(rel)] = note{x.Stamp, now}
		}
	}
	b, err := json.Marshal(n)
	path := filepath.Join(d.Path, filepath.FromSlash(hookNotes))
	if err == nil {
		err = inside.CheckData(filepath.Dir(path), path)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = atomicfile.WriteMode(path, b, 0o644)
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write into the working directory", "%s.", err)
	}
	return nil
}

// sum returns a digest of the configuration in a directory.
func (d *UnitDirectory) sum(put copytree.Files) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", d.Files.Package)
	entries, _ := d.Files.ReadDir(".") // the loader reports errors
	for _, en := range entries {
		if overlay.IsConfig(en.Name()) {
			b, _ := d.Files.ReadFile(en.Name())
			fmt.Fprintf(h, "%q %d\n", en.Name(), len(b))
			h.Write(b)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(put)) {
		if overlay.IsConfig(path) && filepath.Dir(path) != d.Path {
			fmt.Fprintf(h, "%q %v\n", path, put[path].Stamp)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// BeforeHook records the installed modules before the first hook runs.
func (d *UnitDirectory) BeforeHook() {
	if d.hooked.installed == nil {
		d.hooked.installed = d.installedNow()
	}
}

func (d *UnitDirectory) installedNow() map[string]copytree.Stamp {
	out := map[string]copytree.Stamp{}
	d.configBelow(d.modules(), func(path string) bool {
		out[path] = copytree.StampAt(path)
		return true
	})
	return out
}

// configBelow calls yield for each configuration file below a directory until yield returns
// false.
func (d *UnitDirectory) configBelow(dir string, yield func(path string) bool) {
	_ = filepath.WalkDir(dir, func(path string, en fs.DirEntry, err error) error {
		switch {
		case err != nil: // the loader reports errors
			return nil
		case en.IsDir():
			if path != dir && copytree.Private(en.Name()) {
				return filepath.SkipDir
			}
		case overlay.IsConfig(path) || overlay.IsValues(en.Name()) && filepath.Dir(path) == d.Path:
			if !yield(path) {
				return filepath.SkipAll
			}
		}
		return nil
	})
}

// isEdited reports whether files in the working directory differ from those that were copied and
// installed.
func (d *UnitDirectory) isEdited() bool {
	for path, x := range d.hooked.made {
		if filepath.Base(path) != copytree.LockFile && copytree.StampAt(path) != x.Stamp {
			return true
		}
	}
	added := false
	d.configBelow(d.packageDir(), func(path string) bool {
		_, ok := d.hooked.made[path]
		added = !ok
		return !added
	})
	return added || d.hooked.installed != nil && !maps.Equal(d.hooked.installed, d.installedNow())
}

// InitHooksRan reports whether the hooks of init ran for this module before. Make must have been
// called.
func (d *UnitDirectory) InitHooksRan() bool { return d.hooked.past }

// Reread reports whether hooks changed the working directory. If so, the files of d are those in
// the working directory from then on.
func (d *UnitDirectory) Reread() (bool, error) {
	if ds := d.Make(); ds.HasErrors() || !d.isEdited() {
		return false, ds.Err()
	}
	root := d.packageDir()
	now, err := overlay.New(nil, root, d.Files.Sub, root, d.Path, d.data, copytree.Rules{All: true})
	if err != nil {
		return false, err
	}
	set := &source.Set{}
	if d.Parsed != nil && d.Parsed.own {
		set = d.Parsed.Set
	}
	d.Files, d.Parsed = now, &Parsed{own: true, Set: set}
	d.Parsed.Sources.FS = now
	return true, nil
}
