// Package setup is what init does to a folder: it sets up the backend, installs modules and
// providers, and writes the dependency lock file.
//
// Main types: Options; View, who hears of it and is asked; Modules, how modules are
// installed. The one rule: it can be run again at any time, and loses no state.
package setup

import (
	"context"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// How messages name the program.
const (
	product = "Terrace"
	program = "terrace"
)

// Options say what is made ready. The zero value asks nobody, and takes what is there where
// it fits.
type Options struct {
	Vars  []workdir.VarFlag
	Input bool // whether the user may be asked

	NoBackend     bool     // the backend stays as it was set up before
	BackendConfig []string // what is added to the backend block
	Reconfigure   bool     // the backend is taken as it is, without regard to the one before
	Migrate       bool     // states are copied to the backend
	ForceCopy     bool     // without questions
	IgnoreVersion bool     // of the program that wrote a state at a service

	Unlocked    bool // states are not locked while they are copied
	LockTimeout time.Duration
	Who         string // user@host, for locks

	NoModules  bool
	Tests      string // the folder of test files, whose modules and providers are installed too
	Upgrade    bool   // newer versions are looked for
	Readonly   bool   // the dependency lock file may not change
	Pin        bool   // remote modules are pinned in the dependency lock file
	PluginDirs []string
}

// A View hears how it goes. Every function may be nil, and the View too.
type View struct {
	Say   func(text string) // to people, and as an event
	Human func(text string) // to people alone
	Good  func(text string) // to people, in green
	Log   func(text string) // as an event alone

	// Ask asks the user. nil: nobody can be asked.
	Ask func(ctx context.Context, title, text string) (string, error)
	// Invalid is called before errors of the configuration.
	Invalid func()
	// Transfer begins to show which packages arrive.
	Transfer func() Transfer
}

// A Transfer shows which packages arrive, until End. Every function may be nil.
type Transfer struct {
	Package  func(fetch.Progress)
	Provider func(install.Event)
	End      func()
}

func (v *View) say(text string)   { call(v.Say, text) }
func (v *View) human(text string) { call(v.Human, text) }
func (v *View) good(text string)  { call(v.Good, text) }
func (v *View) log(text string)   { call(v.Log, text) }

// transfer begins to show which packages arrive.
func (v *View) transfer() (t Transfer) {
	if v.Transfer != nil {
		t = v.Transfer()
	}
	if t.End == nil {
		t.End = func() {}
	}
	return t
}

func call(f func(string), text string) {
	if f != nil {
		f(text)
	}
}

// Run makes a folder ready. cloud reports that the state is kept as a cloud block says.
func Run(ctx context.Context, c *workdir.Directory, o Options, v *View) (cloud bool, ds diag.List) {
	if v == nil {
		v = &View{}
	}
	i := &initializer{c: c.Anew(), o: &o, view: v}
	ds = i.run(ctx)
	if i.project != nil {
		i.project.Close()
	}
	return i.cloud, ds
}

// An initializer is one run.
type initializer struct {
	c       *workdir.Directory
	o       *Options
	view    *View
	project *workdir.Loaded
	tests   []*testfile.File
	cloud   bool // the state is kept as a cloud block says
	runs    bool // the service of the backend may have the values of variables
}

// mayAsk reports whether the user may be asked.
func (i *initializer) mayAsk() bool { return i.o.Input && i.view.Ask != nil }

// run does the steps in their order: configuration, backend, modules, providers.
func (i *initializer) run(ctx context.Context) diag.List {
	root, ds := i.c.Root()
	if ds.HasErrors() {
		if i.view.Invalid != nil {
			i.view.Invalid()
		}
		return ds
	}
	ds, more := nil, diag.List(nil)
	if !i.o.NoBackend {
		if b := root.Backend; b != nil {
			k, unknown := i.c.Backend().Backends.Kind(b.Type)
			i.cloud, i.runs = !unknown.HasErrors() && k.Settings, !unknown.HasErrors() && k.Runs
		}
		if i.cloud {
			i.view.say("\nInitializing cloud backend...\n")
		} else {
			i.view.say("\nInitializing the backend...\n")
		}
		if more = i.initBackend(ctx, root); more.HasErrors() {
			return more
		}
		ds = append(ds, more...)
	}
	i.tests, more = testrun.Load(i.c.OnDisk(), i.o.Tests, i.c.Set)
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
