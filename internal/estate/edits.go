package estate

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
	"github.com/terrace-iac/terrace/internal/atomicfile"
)

// # What hooks made of a folder
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
type edits map[string]stamp

// still reports whether a file is as hooks left it. One that they removed stays away.
func (e edits) still(path string) bool {
	left, ok := e[path]
	return ok && left == stampAt(path)
}

// around is what a place keeps for its hooks. It is empty where there are none.
type around struct {
	anew      bool             // the command is init: its hooks run whatever ran before
	made      parts            // what was put into the folder
	key       string           // tells the module from any other
	past      bool             // the hooks of init ran for it before
	edited    edits            // what they made of its files
	installed map[string]stamp // modules below .terraform before the first hook
}

// notes is what hookNotes holds.
type notes struct {
	Module string          `json:"module"`
	Edited map[string]note `json:"edited,omitempty"` // by path from the working folder
}

// A note is about one file that hooks changed.
type note struct {
	Of stamp `json:"of"` // what they changed
	To stamp `json:"to"`
}

// hooked reports whether the unit has hooks.
func (p *place) hooked() bool {
	tf := p.terraform
	return tf != nil && len(tf.Before)+len(tf.After)+len(tf.Errors) > 0
}

// meetHooks reads what earlier hooks did to the folder that is made of parts.
func (p *place) meetHooks(put parts) {
	if !p.hooked() {
		return
	}
	if p.made, p.key = put, p.sum(put); p.anew {
		return
	}
	var n notes
	b, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(hookNotes)))
	if err != nil || json.Unmarshal(b, &n) != nil || n.Module != p.key {
		return // nothing is known of them, so they run
	}
	kept := edits{}
	for rel, x := range n.Edited {
		path := filepath.Join(p.dir, filepath.FromSlash(rel))
		now, ok := put[path]
		if kept[path] = x.To; !kept.still(path) || ok && now.stamp != x.Of {
			return // somebody put it back, or what they changed is another: they run again
		}
	}
	p.past, p.edited = true, kept
}

// remember notes that the hooks of init ran, and what they changed.
func (p *place) remember() diag.List {
	n := notes{Module: p.key, Edited: map[string]note{}}
	for path, x := range p.made {
		now := stampAt(path)
		if rel, err := filepath.Rel(p.dir, path); err == nil && now != x.stamp && filepath.Base(path) != lockFile {
			n.Edited[filepath.ToSlash(rel)] = note{x.stamp, now}
		}
	}
	b, err := json.Marshal(n)
	path := filepath.Join(p.dir, filepath.FromSlash(hookNotes))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = atomicfile.WriteMode(path, b, 0o644)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to write into the working folder", "%s.", err)
	}
	return nil
}

// sum tells the configuration that a folder is made of from any other.
func (p *place) sum(put parts) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", p.files.pkg)
	entries, _ := p.files.ReadDir(".") // what cannot be read is told where it is needed
	for _, en := range entries {
		if isConfig(en.Name()) {
			b, _ := p.files.ReadFile(en.Name())
			fmt.Fprintf(h, "%q %d\n", en.Name(), len(b))
			h.Write(b)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(put)) {
		if isConfig(path) && filepath.Dir(path) != p.dir {
			fmt.Fprintf(h, "%q %v\n", path, put[path].stamp)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// beforeHook notes what is installed before the first hook runs.
func (p *place) beforeHook() {
	if p.installed == nil {
		p.installed = p.installedNow()
	}
}

func (p *place) installedNow() map[string]stamp {
	out := map[string]stamp{}
	p.configBelow(filepath.Join(p.dir, ".terraform", "modules"), func(path string) bool {
		out[path] = stampAt(path)
		return true
	})
	return out
}

// configBelow goes through the configuration below a folder, until yield says that
// it is enough.
func (p *place) configBelow(dir string, yield func(path string) bool) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // what cannot be read is told where it is needed
			return nil
		case d.IsDir():
			if path != dir && private(d.Name()) {
				return filepath.SkipDir
			}
		case isConfig(path) || isValues(d.Name()) && filepath.Dir(path) == p.dir:
			if !yield(path) {
				return filepath.SkipAll
			}
		}
		return nil
	})
}

// isEdited reports whether the working folder is another than it was made.
func (p *place) isEdited() bool {
	for path, x := range p.made {
		if filepath.Base(path) != lockFile && stampAt(path) != x.stamp {
			return true
		}
	}
	added := false
	p.configBelow(p.root(), func(path string) bool {
		_, ok := p.made[path]
		added = !ok
		return !added
	})
	return added || p.installed != nil && !maps.Equal(p.installed, p.installedNow())
}

// changed looks whether hooks changed the working folder. If so, its files are those
// of the folder from now on.
func (p *place) changed() (bool, error) {
	if ds := p.onDisk(); ds.HasErrors() || !p.isEdited() {
		return false, ds.Err()
	}
	root := p.root()
	now, err := newFiles(root, p.files.sub, root, p.dir, copyRules{all: true})
	if err != nil {
		return false, err
	}
	p.files, p.shared, p.own = now, &parsed{}, true
	p.shared.sources.FS = now
	return true, nil
}
