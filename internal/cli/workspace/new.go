package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/folder"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state/statefile"
)

func runWorkspaceNew(ctx context.Context, c *command.Call, o *workspaceOptions) int {
	if !store.ValidWorkspace(o.name) {
		return c.Fail(folder.InvalidWorkspace(o.name))
	}
	if ds := overridden(c); len(ds) > 0 {
		return c.Fail(ds)
	}
	w, ds := workspaces(ctx, c, o.vars)
	if w == nil {
		return c.Fail(ds)
	}
	if w.has(o.name) {
		return c.Fail(append(ds, diag.Errorf(nil, fmt.Sprintf("Workspace %q already exists", o.name), "A workspace having the given name already exists")...))
	}
	ds = append(ds, w.create(ctx, o)...)
	return c.Report.Status(ds)
}

// create makes a workspace, selects it and says so. With -state it begins with
// the state of a file.
func (w *workspaceRun) create(ctx context.Context, o *workspaceOptions) diag.List {
	if o.lock.On {
		w.all.Lock, w.all.Timeout = &store.LockInfo{Who: w.User() + "@" + w.Host(), Version: statefile.Version, Created: w.Now()}, o.lock.Timeout
	}
	if ds := w.all.Create(ctx, o.name); ds.HasErrors() {
		return ds
	}
	if ds := project.SelectWorkspace(w.Call, o.name); ds.HasErrors() {
		return ds
	}
	w.Report.Human.Good("Created and switched to workspace \"" + o.name + "\"!")
	w.Report.Human.Say("\n\nYou're now on a new, empty workspace. Workspaces isolate their state,\nso if you run \"" + view.Program + " plan\" " + view.Product + " will not see any existing state\nfor this configuration.\n")
	w.Report.Stream.Log("Created and switched to workspace \"" + o.name + "\". You're now on a new, empty workspace. Workspaces isolate their state, so if you run \"" + view.Program + " plan\" " + view.Product + " will not see any existing state for this configuration")
	if o.state == "" {
		return nil
	}
	return w.copyInto(ctx, o)
}

func (w *workspaceRun) copyInto(ctx context.Context, o *workspaceOptions) diag.List {
	f, err := os.Open(w.Path(o.state))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return diag.Errorf(nil, "Failed to read state", "The state file %s does not exist.", o.state)
		}
		return diag.Errorf(nil, "Failed to read state", "The state file %s cannot be read: %s.", o.state, err)
	}
	_ = f.Close()
	file, ds := project.LocalFile(ctx, w.Call, w.backend.Encryption)
	if ds.HasErrors() {
		return ds
	}
	source, ds := project.OpenStore(w.Call, file, store.Default, flags.State{Path: o.state})
	if ds.HasErrors() {
		return ds
	}
	from, ds := source.Read(ctx)
	if ds.HasErrors() || from == nil {
		return ds
	}
	st, more := project.OpenStore(w.Call, w.backend, o.name, flags.State{})
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if o.lock.On {
		unlock, more := st.Lock(ctx, store.LockInfo{Operation: "workspace-new", Who: w.User() + "@" + w.Host(), Version: statefile.Version, Created: w.Now()}, o.lock.Timeout)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		defer func() { w.Report.Tell(unlock()) }()
	}
	return append(ds, st.Write(ctx, from)...)
}
