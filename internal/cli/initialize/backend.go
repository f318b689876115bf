package initialize

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/internal/cli/project"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/backend/migrate"
	"github.com/terrace-iac/terrace/internal/backend/workdir"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/readfile"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/vars"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state/statefile"
)

// initBackend brings what the data folder knows of the backend in line with
// the configuration, and moves state where the user wants it.
func (i *initializer) initBackend(ctx context.Context, root *config.Module) diag.List {
	in := workdir.Init{
		Block: root.Backend, Options: i.o.backendConfig, Reconfigure: i.o.reconfigure, Migrate: i.o.migrate, Force: i.o.forceCopy,
		Read: func(name string) (*source.File, error) {
			src, err := readfile.Given(i.Path(name))
			f := &source.File{Path: name, Bytes: src, Layer: &source.Layer{Kind: source.BackendFile}}
			if err == nil {
				i.Report.Set.Add(f)
			}
			return f, err
		},
	}
	if i.Prompt.May(i.o.input) {
		in.Ask = i.askArgument
	}
	var enc *encryption.Config
	var ds diag.List
	if root.Backend != nil || root.Encryption != nil {
		p, ds := i.loadForBackend(ctx, root)
		if p == nil {
			return ds
		}
		defer p.Close()
		defer func() { i.o.vars = append(i.o.vars, answered(p.Vars)...) }() // for the steps that follow
		in.Eval = p.StaticAsking(ctx, i.o.input)
		enc, ds = p.Encryption(ctx)
		if ds.HasErrors() {
			return ds
		}
	} else if enc, ds = project.EncryptionOf(ctx, i.Call, nil); ds.HasErrors() {
		return ds
	}
	dir := i.Call.Folder().Backend()
	out, ds := dir.Settle(ctx, in)
	if ds.HasErrors() {
		return ds
	}
	to, more := project.OpenBackend(ctx, i.Call, out.Config, root.Backend, enc)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if b, ok := to.Opened.(backend.Initializer); ok {
		if err := b.Initialize(ctx); err != nil {
			more := backend.Message("Failed to initialize the backend", "", err)
			if root.Backend != nil {
				more = dir.Locate(more, root.Backend)
			}
			return append(ds, more...)
		}
	}
	var m migrate.Migration
	var moved migrate.Result
	if out.From != nil {
		switch {
		case out.Unset:
			i.Report.Say(fmt.Sprintf("%s has detected you're unconfiguring your previously set %q backend.\n", view.Product, out.From.Type))
		case out.Changed && out.From.Type != out.Config.Type:
			i.Report.Say(fmt.Sprintf("%s detected that the backend type changed from %q to %q.\n\n", view.Product, out.From.Type, out.Config.Type))
		case out.Changed:
			i.Report.Say("Backend configuration changed!\n\n" + view.Product + " has detected that the configuration specified for the backend\nhas changed. " + view.Product + " will now check for existing state in the backends.\n\n")
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
		ds = append(ds, migrate.Vacate(ctx, m, moved)...)
	}
	if moved.Select != "" {
		ds = append(ds, project.SelectWorkspace(i.Call, moved.Select)...)
	}
	i.sayConfigured(out)
	return append(ds, i.checkWorkspace(ctx, to)...)
}

// answered are the values that were asked for, as flags.
func answered(values vars.Values) []vars.Flag {
	var out []vars.Flag
	for name, v := range values {
		if v.From.Kind == source.Prompt && v.Text != nil {
			out = append(out, vars.Flag{Value: name + "=" + *v.Text})
		}
	}
	return out
}

func (i *initializer) sayConfigured(out *workdir.Outcome) {
	switch {
	case out.Unset:
		i.Report.Human.Say("\n\n")
		if out.From != nil {
			i.Report.Human.Good(fmt.Sprintf("Successfully unset the backend %q.", out.From.Type))
		} else {
			i.Report.Human.Good("Successfully unset the backend.")
		}
		i.Report.Say(" " + view.Product + " will now operate locally.\n")
	case out.Write && !i.cloud:
		i.Report.Human.Say("\n")
		i.Report.Human.Good(fmt.Sprintf("Successfully configured the backend %q!", out.Config.Type))
		i.Report.Say(" " + view.Product + " will automatically\nuse this backend unless the backend configuration changes.\n")
	}
}

// migration is the copying of states that an init may have to do.
func (i *initializer) migration(ctx context.Context, out *workdir.Outcome, to *project.Place) (migrate.Migration, diag.List) {
	from, ds := project.OpenBackend(ctx, i.Call, *out.From, nil, to.Encryption)
	if ds.HasErrors() {
		return migrate.Migration{}, ds
	}
	current, ds := i.Call.Folder().Workspace()
	if ds.HasErrors() {
		return migrate.Migration{}, ds
	}
	options, codec := project.StoreOptions(i.Call, to, flags.State{IgnoreVersion: i.o.ignoreVersion}), to.Encryption.State(ctx).Codec()
	m := migrate.Migration{
		From:    migrate.Side{Type: out.From.Type, Backend: from.Opened, Options: options, Codec: codec},
		To:      migrate.Side{Type: out.Config.Type, Backend: to.Opened, Options: options, Codec: codec},
		Current: current, Dir: i.KeepDir(), Temp: i.Env.Get("TMPDIR"), Force: i.o.forceCopy, Timeout: i.o.lock.Timeout,
	}
	if i.o.lock.On {
		m.Lock = &store.LockInfo{Who: i.User() + "@" + i.Host(), Version: statefile.Version, Created: i.Now()}
	}
	if i.Prompt.May(i.o.input) {
		m.Choose = func(ctx context.Context, q migrate.Question) (string, error) {
			return i.Prompt.Ask(ctx, prompt.Question{Title: q.Title, Text: q.Text})
		}
		m.Ask = func(ctx context.Context, q migrate.Question) (bool, error) {
			answer, err := i.Prompt.Ask(ctx, prompt.Question{Title: q.Title, Text: q.Text})
			return answer == "yes", err
		}
	}
	return m, nil
}

// askArgument asks for an argument of the backend.
func (i *initializer) askArgument(ctx context.Context, name, description string) (string, error) {
	return i.Prompt.Ask(ctx, prompt.Question{Title: name, Text: description})
}

// checkWorkspace holds that the selected workspace is there, and lets the user select
// another if it is not.
func (i *initializer) checkWorkspace(ctx context.Context, b *project.Place) diag.List {
	named := !backend.HasDefault(b.Opened)
	set := i.Env.Get("TF_WORKSPACE")
	if set != "" && !named {
		return nil
	}
	current, ds := i.Call.Folder().Workspace()
	if ds.HasErrors() || current == store.Default && !named {
		return ds
	}
	all := backend.Workspaces{Backend: b.Opened}
	names, ds := all.List(ctx)
	if ds.HasErrors() || slices.Contains(names, current) {
		return ds
	}
	if set != "" { // one that is named and missing is created, as automation needs it
		return append(ds, all.Create(ctx, set)...)
	}
	if len(names) == 0 && named {
		return append(ds, i.firstWorkspace(ctx, all)...)
	}
	if len(names) == 1 {
		return append(ds, project.SelectWorkspace(i.Call, names[0])...)
	}
	if !i.Prompt.May(i.o.input) {
		return append(ds, diag.Errorf(nil, fmt.Sprintf("Currently selected workspace %q does not exist", current), "%s was asked not to ask questions, so the workspace cannot be selected here. Select one with \"%s workspace select\".", view.Product, view.Program)...)
	}
	text := fmt.Sprintf("The currently selected workspace (%s) does not exist.\nThis is expected behavior when the selected workspace did not have an\nexisting non-empty state. Please enter a number to select a workspace:\n\n", current)
	for n, name := range names {
		text += fmt.Sprintf("%d. %s\n", n+1, name)
	}
	answer, err := i.Prompt.Ask(ctx, prompt.Question{Title: "Select a workspace", Text: text})
	if err != nil {
		return append(ds, diag.Errorf(nil, "No workspace selected", "Nobody selected one: %s. Select one with \""+view.Program+" workspace select\".", err)...)
	}
	n, err := strconv.Atoi(answer)
	if err != nil || n < 1 || n > len(names) {
		return append(ds, diag.Errorf(nil, "No workspace selected", "A number from 1 to %d is needed.", len(names))...)
	}
	return append(ds, project.SelectWorkspace(i.Call, names[n-1])...)
}

// firstWorkspace creates and selects a workspace where there is none.
func (i *initializer) firstWorkspace(ctx context.Context, all backend.Workspaces) diag.List {
	if !i.Prompt.May(i.o.input) {
		return diag.Errorf(nil, "No workspaces", "There are no workspaces with these tags or names, and %s was asked not to ask questions. Set TF_WORKSPACE to the name of one to create, or run \"%s workspace new NAME\".", view.Product, view.Program)
	}
	name, err := i.Prompt.Ask(ctx, prompt.Question{Title: "No workspaces found", Text: "There are no workspaces with these tags or names.\nEnter the name of one to create."})
	if err != nil {
		return diag.Errorf(nil, "No workspace selected", "Nobody named one: %s. Create one with \""+view.Program+" workspace new NAME\".", err)
	}
	if ds := all.Create(ctx, name); ds.HasErrors() {
		return ds
	}
	return project.SelectWorkspace(i.Call, name)
}

// loadForBackend loads the project though modules may not be installed yet:
// what the backend block needs lies in the root module.
func (i *initializer) loadForBackend(ctx context.Context, root *config.Module) (*project.Project, diag.List) {
	return project.Load(ctx, i.Call, project.Options{Vars: i.o.vars, Input: i.o.input, RootOnly: true, Partial: i.runs || root.Encryption == nil})
}
