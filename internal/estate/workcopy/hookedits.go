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

// # What hooks made of a directory
//
// Names, sizes and times tell what hooks changed: those of each file that was put
// there, and of the modules that init installed. The hooks of init run once for a
// module, so what they made of its files must stay: that they ran, for which module,
// and which files they changed is kept in a file among those of init, and such a file
// is not put back as long as it is as they left it. Units without hooks pay nothing
// for it.

// hookNotes is the file, below the working folder. It goes with what init made.
const hookNotes = ".terraform/terrace-hooks.json"

// edits are files that hooks changed, as they left them.
type edits map[string]copytree.Stamp

// unchanged reports whether a file is as hooks left it. One that they removed stays away.
func (e edits) unchanged(path string) bool {
	left, ok := e[path]
	return ok && left == copytree.StampAt(path)
}

// hooked is what a directory keeps for its hooks. It is empty where there are none.
type hooked struct {
	anew      bool                      // the command is init: its hooks run whatever ran before
	made      copytree.Files            // what was put into the folder
	key       string                    // tells the module from any other
	past      bool                      // the hooks of init ran for it before
	edited    edits                     // what they made of its files
	installed map[string]copytree.Stamp // modules below .terraform before the first hook
}

// notes is what hookNotes holds.
type notes struct {
	Module string          `json:"module"`
	Edited map[string]note `json:"edited,omitempty"` // by path from the working folder
}

// A note is about one file that hooks changed.
type note struct {
	Of copytree.Stamp `json:"of"` // what they changed
	To copytree.Stamp `json:"to"`
}

// recall reads what earlier hooks did to the folder that is made of put.
func (d *Dir) recall(put copytree.Files) {
	if !d.HasHooks() {
		return
	}
	if d.hooked.made, d.hooked.key = put, d.sum(put); d.hooked.anew {
		return
	}
	var n notes
	b, err := readfile.Whole(filepath.Join(d.Path, filepath.FromSlash(hookNotes)))
	if err != nil || json.Unmarshal(b, &n) != nil || n.Module != d.hooked.key {
		return // nothing is known of them, so they run
	}
	kept := edits{}
	for rel, x := range n.Edited {
		path := filepath.Join(d.Path, filepath.FromSlash(rel))
		now, ok := put[path]
		if kept[path] = x.To; !kept.unchanged(path) || ok && now.Stamp != x.Of {
			return // somebody put it back, or what they changed is another: they run again
		}
	}
	d.hooked.past, d.hooked.edited = true, kept
}

// NoteHooks notes that the hooks of init ran, and what they changed.
func (d *Dir) NoteHooks() diag.List {
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
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write into the working folder", "%s.", err)
	}
	return nil
}

// sum tells the configuration that a folder is made of from any other.
func (d *Dir) sum(put copytree.Files) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", d.Files.Package)
	entries, _ := d.Files.ReadDir(".") // what cannot be read is reported where it is needed
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

// BeforeHook notes what is installed before the first hook runs.
func (d *Dir) BeforeHook() {
	if d.hooked.installed == nil {
		d.hooked.installed = d.installedNow()
	}
}

func (d *Dir) installedNow() map[string]copytree.Stamp {
	out := map[string]copytree.Stamp{}
	d.configBelow(d.modules(), func(path string) bool {
		out[path] = copytree.StampAt(path)
		return true
	})
	return out
}

// configBelow goes through the configuration below a folder, until yield says that
// it is enough.
func (d *Dir) configBelow(dir string, yield func(path string) bool) {
	_ = filepath.WalkDir(dir, func(path string, en fs.DirEntry, err error) error {
		switch {
		case err != nil: // what cannot be read is reported where it is needed
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

// isEdited reports whether the working folder is another than it was made.
func (d *Dir) isEdited() bool {
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

// InitHooksRan reports whether the hooks of init ran for this module before. The
// directory must have been made.
func (d *Dir) InitHooksRan() bool { return d.hooked.past }

// Reread looks whether hooks changed the working folder. If so, its files are those
// of the folder from now on.
func (d *Dir) Reread() (bool, error) {
	if ds := d.Make(); ds.HasErrors() || !d.isEdited() {
		return false, ds.Err()
	}
	root := d.packageDir()
	now, err := overlay.New(root, d.Files.Sub, root, d.Path, d.data, copytree.Rules{All: true})
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
