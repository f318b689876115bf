package estate

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/unit"
)

// gone reports whether a unit that is to be destroyed has nothing left, where it cannot
// be evaluated any more because outputs that it is made of were destroyed before it: so
// a destroy that stopped halfway can be run again. Where its state is must be known
// without outputs, or from the last time that something was applied here. failed is what
// evaluating it gave.
func (w *work) gone(ctx context.Context, failed diag.List) (bool, diag.List) {
	if w.mode() != plan.Destroy || !slices.ContainsFunc(failed.Errors(), func(m *diag.Message) bool { return m.Code == "unit/no-outputs" }) {
		return false, nil
	}
	e := w.r.e
	t, in := e.blind.Task(ctx), &Unit{Unit: w.u.In(e.blind), Name: w.u.Name}
	tf, ds := in.Terraform(t)
	rs, more := in.RemoteState(t)
	if ds.HasErrors() || more.HasErrors() || e.lateScalar(t, in) != "" {
		return false, nil
	}
	src, ds := e.sourceOf(in, tf)
	if ds.HasErrors() {
		return false, nil
	}
	in.place = &place{unit: in, terraform: tf, dir: e.runsIn(in, src.text, e.downloadDir(t, in)), remote: rs}
	m := e.laid(ctx, w.u)
	late := rs != nil && !unit.Known(rs.Config)
	if late || !m.whole {
		if where, ok := e.notedWhere(in); ok {
			return w.empty(ctx, where)
		}
	}
	if late || rs == nil && (m.root == nil || m.root.Backend != nil) {
		return false, nil
	}
	where, ds := e.stateWhere(ctx, in, m.root, nil, nil)
	if ds.HasErrors() {
		return false, nil
	}
	return w.empty(ctx, where)
}

// whereName is the file in a working folder that notes where the state of the unit was
// when something was applied last, where that hangs on outputs.
const whereName = ".terrace-state"

// noteWhere notes where the state of the unit is, if its files do not say so without
// outputs.
func (w *work) noteWhere(ctx context.Context, where local.Options) error {
	rs, ds := w.u.In(w.r.e.blind).RemoteState(w.r.e.blind.Task(ctx))
	if ds.HasErrors() || (rs == nil || unit.Known(rs.Config)) && w.r.e.laid(ctx, w.u).whole {
		return nil
	}
	path := filepath.Join(w.u.place.dir, whereName)
	text := []byte(local.Open(where).Path() + "\n")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteMode(path, text, 0o600)
}

// notedWhere is where the state of a unit was when something was applied last. A file
// that is not there any more says nothing.
func (e *Estate) notedWhere(u *Unit) (local.Options, bool) {
	o := local.Options{Dir: u.place.dir, Unit: u.Name, Now: e.o.Machine.Now, Workspace: store.Default, Who: e.o.Who}
	b, err := os.ReadFile(filepath.Join(u.place.dir, whereName))
	if err != nil {
		return o, false
	}
	o.Path = strings.TrimSuffix(string(b), "\n")
	info, err := os.Stat(o.Path)
	return o, err == nil && info.Mode().IsRegular()
}
