package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

func runWorkspaceNew(ctx context.Context, c *command.Call, o *workspaceOptions) int {
	if !store.ValidWorkspace(o.name) {
		return c.Fail(workdir.InvalidWorkspace(o.name))
	}
	if ds := overridden(c); len(ds) > 0 {
		return c.Fail(ds)
	}
	w, ds := workspaces(ctx, c, o.vars)
	if w == nil {
		return c.Fail(ds)
	}
	if w.has(o.name) {
		detail := fmt.Sprintf("To use it, run \"workspace select %s\".", o.name)
		if o.state != "" {
			detail += fmt.Sprintf(" Its state was left as it is. If it is one that an earlier command made and could not fill, remove it first with \"workspace delete %s\".", o.name)
		}
		return c.Fail(append(ds, diag.Errorf(diag.CodeStateWorkspace, nil, fmt.Sprintf("Workspace %q already exists", o.name), "%s", detail)...))
	}
	ds = append(ds, w.create(ctx, o)...)
	return c.Report.Status(ds)
}

// create creates a workspace, selects it and reports that. With -state, its first state is
// read from a file before anything is created.
func (w *workspaceRun) create(ctx context.Context, o *workspaceOptions) diag.List {
	first, ds := w.first(ctx, o)
	if ds.HasErrors() {
		return ds
	}
	if o.lock.On {
		w.all.Lock, w.all.Timeout = &store.LockInfo{Who: w.Who(), Info: w.Mark().String(), Version: statefile.Version, Created: w.Now()}, o.lock.Timeout
	}
	if more := w.all.Create(ctx, o.name); more.HasErrors() {
		return append(ds, more...)
	}
	if first != nil {
		if more := w.fill(ctx, o, first); more.HasErrors() {
			return append(ds, more...)
		}
	}
	if more := w.Call.SelectWorkspace(o.name); more.HasErrors() {
		return append(ds, more...)
	}
	w.Report.Human.Good("Created and switched to workspace \"" + o.name + "\"!")
	w.Report.Human.Say("\n\nYou're now on a new, empty workspace. Workspaces isolate their state,\nso if you run \"" + w.Report.Names.Program() + " plan\" " + w.Report.Names.Product() + " will not see any existing state\nfor this configuration.\n")
	w.Report.Stream.Log("Created and switched to workspace \"" + o.name + "\". You're now on a new, empty workspace. Workspaces isolate their state, so if you run \"" + w.Report.Names.Program() + " plan\" " + w.Report.Names.Product() + " will not see any existing state for this configuration")
	return ds
}

// first returns the state in the file of -state, or nil without the flag.
func (w *workspaceRun) first(ctx context.Context, o *workspaceOptions) (*state.State, diag.List) {
	if o.state == "" {
		return nil, nil
	}
	f, err := os.Open(w.Path(o.state))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, diag.Errorf(diag.CodeStateFile, nil, "Failed to read state", "The state file %s does not exist.", o.state)
		}
		return nil, diag.Errorf(diag.CodeStateFile, nil, "Failed to read state", "The state file %s cannot be read: %s.", o.state, err)
	}
	_ = f.Close()
	file, ds := w.Call.LocalFile(ctx, w.backend.Encryption)
	if ds.HasErrors() {
		return nil, ds
	}
	source, ds := w.Call.OpenStore(ctx, file, store.Default, workdir.StateFiles{Path: o.state})
	if ds.HasErrors() {
		return nil, ds
	}
	return source.Read(ctx)
}

// fill writes the first state of a workspace.
func (w *workspaceRun) fill(ctx context.Context, o *workspaceOptions, first *state.State) diag.List {
	st, ds := w.Call.OpenStore(ctx, w.backend, o.name, workdir.StateFiles{})
	if ds.HasErrors() {
		return ds
	}
	if o.lock.On {
		unlock, more := st.Lock(ctx, store.LockInfo{Operation: "workspace-new", Who: w.Who(), Info: w.Mark().String(), Version: statefile.Version, Created: w.Now()}, o.lock.Timeout)
		if more.HasErrors() {
			return append(ds, backend.OfWorkspace(st, o.name, more)...)
		}
		defer func() { w.Report.Tell(unlock()) }()
	}
	return append(ds, st.Write(ctx, first)...)
}
