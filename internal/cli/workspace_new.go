package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state/statefile"
)

func workspaceNewCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.workspaceArgs("workspace new", args, 1, func(o *workspaceOptions) {
		o.lock.add(o.flags)
		o.flags.StringVar(&o.state, "state", "", "")
	})
	if !ok {
		return 1
	}
	defer s.finish()
	return runWorkspaceNew(ctx, s, o)
}

func runWorkspaceNew(ctx context.Context, s *session, o *workspaceOptions) int {
	if !store.ValidWorkspace(o.name) {
		return s.fail(invalidWorkspace(o.name))
	}
	if ds := s.overridden(); len(ds) > 0 {
		return s.fail(ds)
	}
	w, ds := s.workspaces(ctx, o.vars)
	if w == nil {
		return s.fail(ds)
	}
	if w.has(o.name) {
		return s.fail(append(ds, diag.Errorf(nil, fmt.Sprintf("Workspace %q already exists", o.name), "A workspace having the given name already exists")...))
	}
	ds = append(ds, w.create(ctx, o)...)
	return s.status(ds)
}

// create makes a workspace, selects it and says so. With -state it begins with
// the state of a file.
func (w *workspaceRun) create(ctx context.Context, o *workspaceOptions) diag.List {
	if o.lock.on {
		w.all.Lock, w.all.Timeout = &store.LockInfo{Who: w.User() + "@" + w.Host(), Version: statefile.Version, Created: w.Now()}, o.lock.timeout
	}
	if ds := w.all.Create(ctx, o.name); ds.HasErrors() {
		return ds
	}
	if ds := w.selectWorkspace(o.name); ds.HasErrors() {
		return ds
	}
	w.human.Good("Created and switched to workspace \"" + o.name + "\"!")
	w.human.Say("\n\nYou're now on a new, empty workspace. Workspaces isolate their state,\nso if you run \"" + view.Program + " plan\" " + view.Product + " will not see any existing state\nfor this configuration.\n")
	w.stream.Log("Created and switched to workspace \"" + o.name + "\"!")
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
	file, ds := w.localFile(ctx)
	if ds.HasErrors() {
		return ds
	}
	source, ds := w.openStore(file, store.Default, stateFlags{path: o.state})
	if ds.HasErrors() {
		return ds
	}
	from, ds := source.Read(ctx)
	if ds.HasErrors() || from == nil {
		return ds
	}
	st, more := w.openStore(w.backend, o.name, stateFlags{})
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if o.lock.on {
		unlock, more := st.Lock(ctx, store.LockInfo{Operation: "workspace-new", Who: w.User() + "@" + w.Host(), Version: statefile.Version, Created: w.Now()}, o.lock.timeout)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
		defer func() { w.tell(unlock()) }()
	}
	return append(ds, st.Write(ctx, from)...)
}

func workspaceNewUsage() string {
	return workspaceHelp("new", " [options] NAME", "Create a new "+view.Product+" workspace.",
		option("-lock=false", "Do not hold a state lock."),
		option("-lock-timeout=0s", "How long to retry a state lock."),
		option("-state=path", "Copy an existing state file into the new workspace."))
}
