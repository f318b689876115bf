package setup

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/migrate"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state/statefile"
)

// withEarly adds the errors about modules whose source depends on variables without a value, if
// the backend lacks such a variable too, so that the user sees all variables that init needs.
func withEarly(ds, early diag.List) diag.List {
	if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == diag.CodeVarsMissing }) {
		return ds
	}
	return append(ds, early...)
}

// initBackend writes the configured backend to the data directory, and moves state if the user
// requests it.
func (i *initializer) initBackend(ctx context.Context, root *config.Module) diag.List {
	in := selection.Init{
		Block: root.Backend, Options: i.o.BackendConfig, Reconfigure: i.o.Reconfigure, Migrate: i.o.Migrate || i.o.ForceCopy, Force: i.o.ForceCopy,
		Read: i.c.BackendFile,
	}
	if i.mayAsk() {
		in.Ask = i.ask
	}
	var enc *encryption.Config
	var ds, early diag.List
	if root.Backend != nil || root.Encryption != nil {
		p, ds := i.loadForBackend(ctx)
		if p == nil {
			return ds
		}
		defer p.Close()
		defer func() { i.o.Vars = append(i.o.Vars, answered(p.Vars)...) }() // so that later steps do not ask again
		early = p.Early
		block := ""
		if root.Backend != nil {
			block = "backend." + root.Backend.Type
		}
		in.Eval = p.StaticAsking(ctx, i.o.Input, block)
		enc, ds = p.EncryptionAsking(ctx, i.o.Input)
		if ds.HasErrors() {
			return withEarly(ds, early)
		}
	} else if enc, ds = workdir.EncryptionOf(ctx, i.c, nil, ""); ds.HasErrors() {
		return ds
	}
	dir := i.c.Backend()
	out, ds := dir.Settle(ctx, in)
	if ds.HasErrors() {
		return withEarly(ds, early)
	}
	to, more := workdir.OpenBackend(ctx, i.c, out.Config, root.Backend, enc)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if b, ok := to.Opened.(backend.Initializer); ok {
		answered := backend.Watch(to.Opened, i.c.StoreOptions(ctx, to, workdir.StateFiles{}))
		err := b.Initialize(ctx)
		if answered(); err != nil {
			return append(ds, to.Located(backend.Message(diag.CodeBackendFailed, "Failed to initialize the backend", "", err))...)
		}
	}
	var m migrate.Migration
	var moved migrate.Result
	if out.From != nil {
		switch {
		case out.Unset:
			i.view.Say(fmt.Sprintf("%s has detected you're unconfiguring your previously set %q backend.\n", i.view.Names().Product(), out.From.Type))
		case out.Changed && out.From.Type != out.Config.Type:
			i.view.Say(fmt.Sprintf("%s detected that the backend type changed from %q to %q.\n\n", i.view.Names().Product(), out.From.Type, out.Config.Type))
		case out.Changed:
			i.view.Say("Backend configuration changed!\n\n" + i.view.Names().Product() + " has detected that the configuration specified for the backend\nhas changed. " + i.view.Names().Product() + " will now check for existing state in the backends.\n\n")
		}
		if m, more = i.migration(ctx, out, to); more.HasErrors() {
			return append(ds, more...)
		}
		moved, more = migrate.Run(ctx, m)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	}
	if more := dir.Save(out); more.HasErrors() {
		return append(ds, more...)
	}
	if out.From != nil {
		ds = append(ds, migrate.Clear(ctx, m, moved)...)
	}
	if moved.Select != "" {
		ds = append(ds, i.c.SelectWorkspace(moved.Select)...)
	}
	i.sayConfigured(out)
	return append(ds, i.checkWorkspace(ctx, to)...)
}

// answered returns the values that the user has entered, as -var flags.
func answered(values workdir.Variables) []workdir.VarFlag {
	var out []workdir.VarFlag
	for name, v := range values {
		if v.From.Kind == source.Prompt && v.Text != nil {
			out = append(out, workdir.VarFlag{Value: name + "=" + *v.Text})
		}
	}
	return out
}

func (i *initializer) sayConfigured(out *selection.Outcome) {
	switch {
	case out.Unset:
		i.view.Human("\n\n")
		if out.From != nil {
			i.view.Good(fmt.Sprintf("Successfully unset the backend %q.", out.From.Type))
		} else {
			i.view.Good("Successfully unset the backend.")
		}
		i.view.Say(" " + i.view.Names().Product() + " will now operate locally.\n")
	case out.Write && !i.cloud:
		i.view.Human("\n")
		i.view.Good(fmt.Sprintf("Successfully configured the backend %q!", out.Config.Type))
		i.view.Say(" " + i.view.Names().Product() + " will automatically\nuse this backend unless the backend configuration changes.\n")
	}
}

// migration returns the options for copying states from the previous backend to the new one.
func (i *initializer) migration(ctx context.Context, out *selection.Outcome, to *workdir.OpenedBackend) (migrate.Migration, diag.List) {
	from, ds := workdir.OpenBackend(ctx, i.c, *out.From, nil, to.Encryption)
	if ds.HasErrors() {
		return migrate.Migration{}, ds
	}
	current, ds := i.c.Workspace()
	if ds.HasErrors() {
		return migrate.Migration{}, ds
	}
	options, records := i.c.StoreOptions(ctx, to, workdir.StateFiles{}), to.Encryption.State(ctx).Records()
	options.IgnoreVersion = i.o.IgnoreVersion
	source := options
	source.Locate = from.Locate
	m := migrate.Migration{
		From:    migrate.Side{Type: out.From.Type, Backend: from.Opened, Options: source, Records: records},
		To:      migrate.Side{Type: out.Config.Type, Backend: to.Opened, Options: options, Records: records},
		Current: current, Dir: i.c.KeepDir(), User: i.c.User, Temp: i.c.Env.Get("TMPDIR"), Force: i.o.ForceCopy, Timeout: i.o.LockTimeout,
	}
	if !i.o.Unlocked {
		m.Lock = &store.LockInfo{Who: i.o.Who, Version: statefile.Version, Created: i.c.Now()}
	}
	if i.mayAsk() {
		m.Choose = func(ctx context.Context, q migrate.Question) (string, error) {
			return i.ask(ctx, q.Title, q.Text)
		}
		m.Ask = func(ctx context.Context, q migrate.Question) (bool, error) {
			answer, err := i.ask(ctx, q.Title, q.Text)
			return answer == "yes", err
		}
	}
	return m, nil
}

// checkWorkspace checks that the selected workspace exists. If it does not, it creates the workspace
// that TF_WORKSPACE names, selects the only existing one, or asks the user to select one.
func (i *initializer) checkWorkspace(ctx context.Context, b *workdir.OpenedBackend) diag.List {
	named := !backend.HasDefault(b.Opened)
	set := i.c.Env.Get("TF_WORKSPACE")
	if set != "" && !named {
		return nil
	}
	current, ds := i.c.Workspace()
	if ds.HasErrors() || current == store.Default && !named {
		return ds
	}
	all := backend.Workspaces{Backend: b.Opened, Options: i.c.StoreOptions(ctx, b, workdir.StateFiles{})}
	names, ds := all.List(ctx)
	if ds.HasErrors() || slices.Contains(names, current) {
		return ds
	}
	if set != "" { // automation needs the workspace to be created
		return append(ds, all.Create(ctx, set)...)
	}
	if len(names) == 0 && named {
		return append(ds, i.firstWorkspace(ctx, all)...)
	}
	if len(names) == 1 {
		return append(ds, i.c.SelectWorkspace(names[0])...)
	}
	if !i.mayAsk() {
		return append(ds, diag.Errorf(diag.CodeStateWorkspace, nil, fmt.Sprintf("Currently selected workspace %q does not exist", current), "%s was asked not to ask questions, so the workspace cannot be selected here. Select one with \"%s workspace select\".", product, program)...)
	}
	text := fmt.Sprintf("The currently selected workspace (%s) does not exist.\nThis is expected behavior when the selected workspace did not have an\nexisting non-empty state. Please enter a number to select a workspace:\n\n", current)
	for n, name := range names {
		text += fmt.Sprintf("%d. %s\n", n+1, name)
	}
	answer, err := i.ask(ctx, "Select a workspace", text)
	if err != nil {
		return append(ds, diag.Errorf(diag.CodeStateWorkspace, nil, "No workspace selected", "Nobody selected one: %s. Select one with \""+program+" workspace select\".", err)...)
	}
	n, err := strconv.Atoi(answer)
	if err != nil || n < 1 || n > len(names) {
		return append(ds, diag.Errorf(diag.CodeStateWorkspace, nil, "No workspace selected", "A number from 1 to %d is needed.", len(names))...)
	}
	return append(ds, i.c.SelectWorkspace(names[n-1])...)
}

// firstWorkspace asks for a name, and creates and selects that workspace. There is no workspace yet.
func (i *initializer) firstWorkspace(ctx context.Context, all backend.Workspaces) diag.List {
	if !i.mayAsk() {
		return diag.Errorf(diag.CodeCloudWorkspace, nil, "No workspaces", "There are no workspaces with these tags or names, and %s was asked not to ask questions. Set TF_WORKSPACE to the name of one to create, or run \"%s workspace new NAME\".", product, program)
	}
	name, err := i.ask(ctx, "No workspaces found", "There are no workspaces with these tags or names.\nEnter the name of one to create.")
	if err != nil {
		return diag.Errorf(diag.CodeStateWorkspace, nil, "No workspace selected", "Nobody named one: %s. Create one with \""+program+" workspace new NAME\".", err)
	}
	if ds := all.Create(ctx, name); ds.HasErrors() {
		return ds
	}
	return i.c.SelectWorkspace(name)
}

// loadForBackend loads the configuration for its backend and encryption blocks. Modules may not be
// installed yet, because both blocks are in the root module. Variables may have no value; those that
// the blocks refer to are requested later. The configuration is loaded again after the modules are
// installed.
func (i *initializer) loadForBackend(ctx context.Context) (*workdir.Loaded, diag.List) {
	return workdir.Load(ctx, i.c, workdir.LoadOptions{Vars: i.o.Vars, Input: i.o.Input, RootOnly: true, Partial: true, Files: i.c.NewSources()})
}
