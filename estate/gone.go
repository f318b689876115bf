package estate

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/unit"
)

// gone reports whether a unit that is to be destroyed has nothing left, where it cannot
// be evaluated any more because outputs that it is made of were destroyed before it: so
// a destroy that stopped halfway can be run again. Where its state is must be known
// without outputs. failed is what evaluating it gave.
func (w *work) gone(ctx context.Context, failed diag.List) (bool, diag.List) {
	if w.mode() != plan.Destroy || !slices.ContainsFunc(failed.Errors(), func(m *diag.Message) bool { return m.Code == "unit/no-outputs" }) {
		return false, nil
	}
	e := w.r.e
	t, in := e.blind.Task(ctx), &Unit{Unit: w.u.In(e.blind), Name: w.u.Name}
	tf, ds := in.Terraform(t)
	rs, more := in.RemoteState(t)
	if ds.HasErrors() || more.HasErrors() || rs != nil && !unit.Known(rs.Config) || e.lateScalar(t, in) != "" {
		return false, nil
	}
	src, ds := e.sourceOf(in, tf)
	m := e.laid(ctx, w.u)
	if ds.HasErrors() || rs == nil && (m.root == nil || m.root.Backend != nil) {
		return false, nil
	}
	in.place = &place{unit: in, terraform: tf, dir: e.runsIn(in, src.text, e.downloadDir(t, in)), remote: rs}
	where, ds := e.stateWhere(ctx, in, m.root, nil, nil)
	if ds.HasErrors() {
		return false, nil
	}
	return w.empty(ctx, where)
}
