package setup

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/state"
)

// initProviders installs the providers that configuration, state and test files need, and writes the
// dependency lock file.
func (i *initializer) initProviders(ctx context.Context) diag.List {
	i.view.Say("\nInitializing provider plugins...\n")
	req, ds := i.needed(ctx)
	if ds.HasErrors() {
		return ds
	}
	for _, a := range workdir.SortedProviders(req) {
		if a.IsBuiltIn() {
			for _, c := range req[a] {
				ds = append(ds, diag.Errorf(diag.CodeProviderBuiltinVersion, &c.At, "Invalid dependency on built-in provider", "Cannot use %s with a version constraint: it is a part of the program and comes in one version. Remove the constraint.", a)...)
			}
			i.view.Human("- " + a.String() + " is built in to " + i.view.Names().Product() + "\n")
			i.view.Log(a.String() + " is built in to " + i.view.Names().Product())
		}
	}
	if ds.HasErrors() {
		return ds
	}
	pl := i.project.Plugins
	o := pl.InstallOptions()
	o.PluginDirs, o.Upgrade = i.o.PluginDirs, i.o.Upgrade
	t := i.view.Transfer()
	defer t.End()
	signed := false
	o.Progress = func(e install.Event) {
		t.Provider(e)
		i.installed(e)
		signed = signed || e.Auth.How == install.Signed
	}
	ds = append(ds, install.OverrideWarning(o, true)...)
	if err := install.RecordPluginDirs(o); err != nil {
		return append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to save plugin directories", "What -plugin-dir says cannot be saved: %s.", err)...)
	}
	locked, more := lock.Read(pl.Directory.Files, pl.LockPath())
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	_, next, more := install.Install(ctx, pl.Packaged(req), locked, o)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if signed {
		i.view.Human("\nProviders are signed by their developers.\nIf you'd like to know more about provider signing, you can read about it here:\n" + signingPage + "\n")
		i.view.Log("Providers are signed by their developers. If you'd like to know more about provider signing, you can read about it here: " + signingPage)
	}
	return append(ds, i.saveLock(locked, next, i.readonly())...)
}

// signingPage is the URL of the documentation of provider signing.
const signingPage = "https://opentofu.org/docs/cli/plugins/signing/"

// needed returns the providers that the configuration, the state and the test files need.
func (i *initializer) needed(ctx context.Context) (install.Requirements, diag.List) {
	ds := module.CheckProviders(i.project.Engine.Tree())
	if ds.HasErrors() {
		return nil, ds
	}
	s, more := i.stateForInit(ctx)
	ds = append(ds, more...)
	if s != nil {
		s = i.project.Translate(s)
	}
	req := i.project.Required(s)
	if len(i.tests) > 0 && !i.o.NoModules {
		eo, _, more := workdir.EngineOptions(i.c, workdir.LoadOptions{})
		ds = append(ds, more...)
		for a, cs := range testrun.Requirements(ctx, eo, i.project.Engine.Root(), i.tests) {
			req[a] = append(req[a], cs...)
		}
	}
	return req, ds
}

// stateForInit reads the state, or returns nil if there is none. With Options.NoBackend it returns nil
// too if the backend cannot be opened or the state cannot be read, for example decrypted.
func (i *initializer) stateForInit(ctx context.Context) (*state.State, diag.List) {
	b, ds := i.project.Backend(ctx)
	if ds.HasErrors() {
		if !i.o.NoBackend {
			return nil, ds
		}
		return nil, nil
	}
	st, ds := i.c.ReadWorkspace(ctx, b, i.project.Workspace, workdir.StateFiles{})
	if ds.HasErrors() && i.o.NoBackend {
		return nil, nil
	}
	return st, ds
}

func (i *initializer) installed(e install.Event) {
	text := e.Text()
	if text == "" {
		return
	}
	i.view.Human("- " + text + "\n")
	i.view.Log(text)
}

// saveLock writes the dependency lock file if it changed.
func (i *initializer) saveLock(old, next *lock.File, readonly bool) diag.List {
	if next == nil || next.Equal(old) {
		return nil
	}
	if readonly {
		if !next.SameProviders(old) {
			return diag.Errorf(diag.CodeLockMismatch, nil, "Provider dependency changes detected", "Changes to the required provider dependencies were detected, but the lock file is read-only. To use and record these requirements, run \"%s init\" without the \"-lockfile=readonly\" flag.", program)
		}
		return diag.Warnf(diag.CodeLockMismatch, nil, "Provider lock file not updated", "Changes to the provider selections were detected, but not saved in the %s file. To record these selections, run \"%s init\" without the \"-lockfile=readonly\" flag.", lock.Name, program)
	}
	if err := lock.Write(i.project.Plugins.LockPath(), next); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write dependency lock file", "The dependency lock file cannot be written: %s.", err)
	}
	if len(old.Sorted()) == 0 {
		i.view.Say("\n" + i.view.Names().Product() + " has created a lock file " + lock.Name + " to record the provider\nselections it made above. Include this file in your version control repository\nso that " + i.view.Names().Product() + " can guarantee to make the same selections by default when\nyou run \"" + i.view.Names().Program() + " init\" in the future.\n")
		return nil
	}
	i.view.Say("\n" + i.view.Names().Product() + " has made some changes to the provider dependency selections recorded\nin the " + lock.Name + " file. Review those changes and commit them to your\nversion control system if they represent changes you intended to make.\n")
	return nil
}
