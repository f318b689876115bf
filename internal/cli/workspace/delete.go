package workspace

import (
	"context"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

func runWorkspaceDelete(ctx context.Context, c *command.Call, o *workspaceOptions) int {
	w, ds := workspaces(ctx, c, o.vars)
	if w == nil {
		return c.Fail(ds)
	}
	switch {
	case !w.has(o.name):
		return c.Fail(append(ds, w.unknown(o.name)...))
	case o.name == w.current:
		return c.Fail(append(ds, diag.Errorf(diag.CodeStateWorkspace, nil, fmt.Sprintf("Workspace %q is your active workspace", o.name), "You cannot delete the currently active workspace. Please switch to another workspace and try again.")...))
	case o.name == store.Default:
		return c.Fail(append(ds, diag.Errorf(diag.CodeStateWorkspace, nil, "Cannot delete the default workspace", "The workspace \"default\" always exists.")...))
	}
	more := w.remove(ctx, o)
	return c.Report.Status(append(ds, more...))
}

func (w *workspaceRun) remove(ctx context.Context, o *workspaceOptions) diag.List {
	st, ds := w.Call.OpenStore(ctx, w.backend, o.name, workdir.StateFiles{})
	if ds.HasErrors() {
		return ds
	}
	at := w.PlaceOf(w.backend, st, o.name).Manager(w.Report.Context)
	at.Run = store.LockInfo{Operation: "workspace-delete", Who: w.Who(), Info: w.Mark().String(), Version: statefile.Version, Created: w.Now()}
	if o.lock.On {
		at.Lock, at.Timeout = &at.Run, o.lock.Timeout
	}
	h, ds := statemgr.Take(ctx, at)
	if ds.HasErrors() {
		return backend.OfWorkspace(st, o.name, ds)
	}
	held := h.Current()
	if !o.force && objects(held) > 0 {
		ds = append(ds, notEmpty(o.name, held)...)
	} else {
		ds = append(ds, h.Settle(ctx)...)
	}
	ds = append(ds, h.Release()...) // release first, since the lock file is in the directory to delete
	if ds.HasErrors() {
		return ds
	}
	if ds = append(ds, w.all.Delete(ctx, o.name)...); ds.HasErrors() {
		return ds
	}
	w.Report.Human.Good("Deleted workspace \"" + o.name + "\"!")
	w.Report.Human.Say("\n")
	w.Report.Stream.Log("Deleted workspace \"" + o.name + "\"")
	if objects(held) > 0 {
		ds = append(ds, diag.Warnf(diag.CodeStateWorkspace, nil, fmt.Sprintf("%q was non-empty", o.name), "The resources managed by the deleted workspace may still exist, but are no longer manageable by %s since the state has been deleted.", view.Product)...)
	}
	return ds
}

func objects(s *state.State) int {
	if s == nil {
		return 0
	}
	return len(s.Resources)
}

func notEmpty(name string, s *state.State) diag.List {
	var lines []string
	for a := range s.Instances() {
		lines = append(lines, "  - "+a.String())
	}
	return diag.Errorf(diag.CodeStateWorkspace, nil, "Workspace is not empty", "Workspace %q is currently tracking the following resource instances:\n%s\n\nDeleting this workspace would cause %[3]s to lose track of any associated remote objects, which would then require you to delete them manually outside of %[3]s. You should destroy these objects with %[3]s before deleting the workspace.\n\n"+
		"If you want to delete this workspace anyway, and have %[3]s forget about these managed objects, use the -force option to disable this safety check.", name, strings.Join(lines, "\n"), view.Product)
}
