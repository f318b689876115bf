// Package setup initializes a directory: it sets up the backend, installs modules and
// providers, and writes the dependency lock file.
//
// Main types: Options; View, which shows the progress; Modules, the options for installing
// modules. The one rule: it can be run again at any time, and loses no state.
package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Names of the program in messages. Texts for the View use the names that View.Names returns.
const (
	product = "Terrace"
	program = "terrace"
)

// Options configures Run. With the zero value, Run does not ask the user, and keeps installed
// packages that match the constraints.
type Options struct {
	Vars  []workdir.VarFlag
	Input bool // whether the user may be asked

	NoBackend     bool     // leave the backend as it was initialized before
	BackendConfig []string // values of -backend-config, which are merged into the backend block
	Reconfigure   bool     // use the configured backend and ignore the previous one
	Migrate       bool     // copy states to the backend
	ForceCopy     bool     // copy states to the backend without asking the user
	IgnoreVersion bool     // accept a remote workspace for another version of the language

	Unlocked    bool // do not lock states while they are copied
	LockTimeout time.Duration
	Who         string // user@host, for locks

	NoModules  bool
	Tests      string // directory of test files, whose modules and providers are installed too
	Upgrade    bool   // install the newest versions that the constraints allow
	Lockfile   string // "readonly": the dependency lock file may not change
	Pin        bool   // pin remote modules in the dependency lock file
	PluginDirs []string
}

// Flags returns the flags of init that set o. The caller adds those that it shares with other
// commands.
func (o *Options) Flags() flag.Flags {
	return flag.Flags{
		flag.Off(&o.NoBackend, "backend", "Leave the backend as it was initialized before. Alias: -cloud=false."),
		flag.Off(&o.NoBackend, "cloud", "").Hide(),
		flag.BackendConfig(&o.BackendConfig),
		flag.Bool(&o.ForceCopy, "force-copy", "Answer \"yes\" to all questions about copying state."),
		flag.Off(&o.NoModules, "get", "Do not install modules."),
		flag.Off(&o.Unlocked, "lock", "Do not hold a state lock while state is migrated."),
		flag.LockTimeout(&o.LockTimeout),
		flag.List(&o.PluginDirs, "plugin-dir", "path", "A directory with provider packages, in place of all others. May be repeated.").Completes(flag.Folders),
		flag.Bool(&o.Reconfigure, "reconfigure", "Take the backend configuration as it is, without regard to what was configured before."),
		flag.Bool(&o.Migrate, "migrate-state", "Take the backend configuration as it is and copy existing state to it."),
		flag.Bool(&o.Upgrade, "upgrade", "Install the latest module and provider versions that the constraints allow."),
		flag.Text(&o.Lockfile, "lockfile", "readonly", "Fail where the dependency lock file would have to change."),
		flag.Bool(&o.Pin, "lock-modules", "Pin remote modules in the dependency lock file, and keep them pinned from now on."),
		flag.Bool(&o.IgnoreVersion, "ignore-remote-version", "").Hide(),
	}
}

// Add parses words that unit files and the environment add to an automatic init, and sets the options.
// It ignores -input.
func (o *Options) Add(words []string) diag.List {
	fs := append(o.Flags(), flag.Vars(&o.Vars)...)
	rest, _, err := append(fs, flag.NoColor(), flag.Ignored("input", "", "")).Parse(words, nil, false)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%q is no flag", rest[0])
	}
	if err != nil {
		return BadWords(err)
	}
	return nil
}

// BadWords returns the error for words that are added to init and that cannot be parsed.
func BadWords(err error) diag.List {
	return diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "What is added to init cannot be read: %s.", err)
}

// A View shows the progress of init. Embed Silent to implement only a part of it.
type View interface {
	// Say shows a text to people and reports it as an event.
	Say(text string)
	// Human shows a text to people only.
	Human(text string)
	// Good shows the text of a success to people only.
	Good(text string)
	// Log reports a text as an event only.
	Log(text string)
	// Invalid introduces the errors of the configuration, which Run returns.
	Invalid()
	// Transfer begins to show downloads.
	Transfer() Transfer
	// Names returns the names that the program uses for itself in the texts.
	Names() diag.Names
}

// A Transfer shows downloads until End. Its methods may be called concurrently.
type Transfer interface {
	// Module reports the progress of the package of a module.
	Module(p fetch.Progress)
	// Provider reports the progress of the package of a provider.
	Provider(e install.Event)
	End()
}

// Silent is a View and a Transfer that show nothing.
type Silent struct{}

// Say does nothing.
func (Silent) Say(string) {}

// Human does nothing.
func (Silent) Human(string) {}

// Good does nothing.
func (Silent) Good(string) {}

// Log does nothing.
func (Silent) Log(string) {}

// Invalid does nothing.
func (Silent) Invalid() {}

// Transfer returns a silent Transfer.
func (Silent) Transfer() Transfer { return Silent{} }

// Names returns the program's own names.
func (Silent) Names() diag.Names { return diag.Names{} }

// Module does nothing.
func (Silent) Module(fetch.Progress) {}

// Provider does nothing.
func (Silent) Provider(install.Event) {}

// End does nothing.
func (Silent) End() {}

// Run initializes a directory. cloud reports whether a cloud block configures the backend.
func Run(ctx context.Context, c *workdir.Directory, o Options, v View) (cloud bool, ds diag.List) {
	i := &initializer{c: c.Anew(), o: &o, view: v, host: c.Host}
	if i.host == nil {
		i.host = workdir.Silent{}
	}
	ds = i.run(ctx)
	if i.project != nil {
		i.project.Close()
	}
	return i.cloud, ds
}

// An initializer is the state of one Run.
type initializer struct {
	c       *workdir.Directory
	o       *Options
	view    View
	host    workdir.Host
	project *workdir.Loaded
	tests   []*testfile.File
	cloud   bool // a cloud block configures the backend
	runs    bool // the backend is a service that can run plans and store the values of variables
}

// readonly reports whether the dependency lock file may not change.
func (i *initializer) readonly() bool { return i.o.Lockfile == "readonly" }

// mayAsk reports whether the user may be asked.
func (i *initializer) mayAsk() bool { return i.o.Input && i.host.Asks() }

// ask asks the user a question.
func (i *initializer) ask(ctx context.Context, title, text string) (string, error) {
	return i.host.Ask(ctx, workdir.Question{Title: title, Text: text})
}

// run does the steps in their order: configuration, backend, modules, providers.
func (i *initializer) run(ctx context.Context) diag.List {
	root, ds := i.c.Root()
	if ds.HasErrors() {
		i.view.Invalid()
		return ds
	}
	ds, more := nil, diag.List(nil)
	if !i.o.NoBackend {
		if b := root.Backend; b != nil {
			k, unknown := i.c.Backend().Backends.Kind(b.Type)
			i.cloud, i.runs = !unknown.HasErrors() && k.Settings, !unknown.HasErrors() && k.Runs
		}
		if i.cloud {
			i.view.Say("\nInitializing cloud backend...\n")
		} else {
			i.view.Say("\nInitializing the backend...\n")
		}
		if more = i.initBackend(ctx, root); more.HasErrors() {
			return more
		}
		ds = append(ds, more...)
	}
	i.tests, more = testrun.Load(i.c.OnDisk(), i.o.Tests, i.c.Set, root)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if !i.o.NoModules && len(root.Calls)+len(testrun.Calls(i.tests)) > 0 {
		more = i.initModules(ctx)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	}
	i.project, more = workdir.Load(ctx, i.c, workdir.LoadOptions{Vars: i.o.Vars, Input: i.o.Input, Partial: true, Const: true, Unapplied: true})
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	return append(ds, i.initProviders(ctx)...)
}
