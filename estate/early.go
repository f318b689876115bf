package estate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/unit"
)

// # Hooks that change what is run
//
// A hook may write into the working folder: files of the module, values of variables.
// So hooks that come before a command run before the module counts as read. The
// folder that they leave is compared with what it was made of; where they changed
// configuration, the module is read from the folder itself. Hooks around the init that
// Terragrunt does by itself (init) and around its copy of the module
// (init-from-module) run when the module is new to the folder.

// hooksMarker is a file in a working folder that says for which module the hooks of
// its init have run.
const hooksMarker = ".terrace-hooks"

// The commands of hooks around what is no command of the user.
const (
	hookInit   = "init"
	hookModule = "init-from-module"
	hookConfig = "terragrunt-read-config"
)

// wants reports whether a hook is about a command.
func wants(list []unit.Hook, command string) bool {
	return slices.ContainsFunc(list, func(h unit.Hook) bool { return h.If && slices.Contains(h.Commands, command) })
}

// early runs the hooks that come before those of the command.
func (w *work) early(ctx context.Context) diag.List {
	if !w.hasHooks() {
		return nil
	}
	p, tf := w.u.place, w.u.place.terraform
	module := tf.Source != nil && (wants(tf.Before, hookModule) || wants(tf.After, hookModule))
	before, after := wants(tf.Before, hookInit), wants(tf.After, hookInit)
	byUser := w.r.e.o.Command == hookInit // whose hooks run around it
	ds := w.hooksOf(ctx, tf.After, hookConfig, nil)
	if !module && (byUser || !before && !after) {
		return ds
	}
	marker, key := filepath.Join(p.dir, hooksMarker), []byte(p.files.sum())
	if old, err := os.ReadFile(marker); err == nil && bytes.Equal(old, key) && !byUser || ds.HasErrors() {
		w.ran = true // before: what they made is there
		return ds
	}
	if module {
		if ds = append(ds, w.hooksOf(ctx, tf.Before, hookModule, nil)...); !ds.HasErrors() {
			ds = append(ds, w.hooksOf(ctx, tf.After, hookModule, nil)...)
		}
	}
	if !byUser && !ds.HasErrors() {
		ds = append(ds, w.hooksOf(ctx, tf.Before, hookInit, nil)...)
		if after && !ds.HasErrors() && w.r.e.o.Host.Init != nil {
			ds = append(ds, w.install(ctx)...)
		}
		ds = append(ds, w.hooksOf(ctx, tf.After, hookInit, ds)...)
	}
	if !ds.HasErrors() {
		if err := atomicfile.WriteMode(marker, key, 0o644); err != nil {
			ds = append(ds, diag.Errorf(nil, "Failed to write into the working folder", "%s.", err)...)
		}
	}
	return ds
}

// EarlyHooks runs the hooks of a command on the unit alone that come before what the
// command needs is looked at. The unit must be Ready.
func (e *Estate) EarlyHooks(ctx context.Context, u *Unit, o Observer) (code int, ds diag.List) {
	w := &work{r: &Run{e: e, o: RunOptions{Observe: o}}, u: u, res: &Result{Unit: u}, t: e.task(ctx)}
	ds = w.early(ctx)
	return w.res.Code, ds
}

// settle reads the module and the inputs again after hooks ran: from the folder,
// where they changed what is in it. What was wrong before may have been cured by
// them.
func (w *work) settle(ctx context.Context) (idle bool, ds diag.List) {
	if !w.ran {
		return false, w.first
	}
	changed, err := w.u.place.changed()
	switch {
	case err != nil:
		return false, diag.Errorf(nil, "Failed to read the working folder", "%s.", err)
	case changed:
		w.res.Set = &w.u.place.shared.set
	case !w.first.HasErrors():
		idle, ds = w.inputs(ctx)
		for _, m := range w.first {
			if !slices.ContainsFunc(ds, func(o *diag.Message) bool { return o.Summary == m.Summary && o.Detail == m.Detail }) {
				ds = append(ds, m)
			}
		}
		return idle, ds
	}
	if w.engine != nil {
		w.engine.Close()
		w.engine = nil
	}
	return w.ready(ctx)
}

// sum tells the configuration in a folder from any other.
func (f *files) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", f.pkg)
	entries, _ := f.ReadDir(".") // what cannot be read is told where it is needed
	for _, en := range entries {
		if isConfig(en.Name()) {
			b, _ := f.ReadFile(en.Name())
			fmt.Fprintf(h, "%q %d\n", en.Name(), len(b))
			h.Write(b)
		}
	}
	return hex.EncodeToString(h.Sum(nil)) + "\n"
}

// changed looks whether the working folder holds other configuration, or other values
// of variables, than it was made of. If so, its files are those of the folder from now
// on.
func (p *place) changed() (bool, error) {
	root := strings.TrimSuffix(p.dir, string(filepath.Separator)+filepath.FromSlash(p.files.sub))
	if p.files.sub == "" {
		root = p.dir
	}
	now, err := newFiles(root, p.files.sub, root, p.dir, copyRules{all: true})
	if err != nil {
		return false, err
	}
	was, err := p.files.reads()
	if err != nil {
		return false, err
	}
	is, err := now.reads()
	if err != nil {
		return false, err
	}
	delete(is, p.backendAt)
	same := len(was) == len(is)
	for name, b := range is {
		old, ok := was[name]
		same = same && ok && bytes.Equal(old, b)
	}
	if same {
		return false, nil
	}
	p.files, p.shared, p.own = now, &parsed{}, true
	p.shared.sources.FS = now
	return true, nil
}

// reads are the files of a folder that are read by themselves.
func (f *files) reads() (map[string][]byte, error) {
	entries, err := f.ReadDir(".")
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, en := range entries {
		if name := en.Name(); isConfig(name) || isValues(name) {
			if out[name], err = f.ReadFile(name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
