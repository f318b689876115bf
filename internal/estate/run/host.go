package run

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
)

// A Host is what the program around an estate does for its units. Every field may be nil.
type Host struct {
	// Plugins are the providers of the folder that the program works in. Those of a unit are
	// found by the same settings, in its own folder. nil: units have the built-in provider
	// alone, and neither provisioners nor terraform_remote_state.
	Plugins *workdir.Plugins
	// Vars are the values that the user gives to the variables of all units, and Texts gets the
	// text of variable files; nil for nobody.
	Vars  FlagVars
	Texts *source.Set
	// VarsOfCommand are the values that the user gives to a command that works in the directory
	// of a unit, and reads its flags itself.
	VarsOfCommand FlagVars
	// Init installs modules and providers into the working folder of a unit, and the
	// hooks of init run around it. nil: neither is done, unless it is the command.
	Init func(ctx context.Context, in Installing) diag.List
	// Provisioners stand in for those of the program; nil for none.
	Provisioners func(engine.Provisioners) engine.Provisioners
	// Backends are the kinds of backends, opened once each for all units.
	Backends *backend.Set
	// Of returns the Host of a unit, by what a sentence calls the unit. nil: they are silent.
	Of func(unit string) workdir.Host
	// Lease is how long the turn of a unit may work on its state; nil: to its end.
	Lease func(unit string) *statemgr.Lease
	// CopiedTo is the folder with the files of the estate where they are copies of those of
	// another machine; "" for the files themselves.
	CopiedTo string
	// KeepSegments says whether journals of applies are kept in the stores of the states, too.
	KeepSegments workdir.KeepSegments
	// Journals is where the journal of a state is kept whose store has no room; nil: nowhere.
	Journals func(state string) statemgr.Segments
	// Bootstrap says whether the stores of states are made before they are used.
	Bootstrap states.Bootstrapping
	// Decorate returns the Decorate of the engine in a unit's working directory; nil: engines
	// use providers as they are.
	Decorate func(dir string) func(addr.Provider, provider.Factory) provider.Factory
	// Program is the path of the program, for hooks that call it; "" for its name.
	Program string
}

// FlagVars are values of variables that the user gives by flags. Paths in them are absolute.
type FlagVars struct {
	Flags []workdir.VarFlag
	// First is the number of leading flags that come from the environment: what a unit's file
	// adds overrides them, and the other flags override that.
	First int
}

// around returns the flags with what a unit's file adds among them.
func (f FlagVars) around(added []workdir.VarFlag) []workdir.VarFlag {
	return slices.Concat(f.Flags[:f.First], added, f.Flags[f.First:])
}

// typed returns the flags of the command line.
func (f FlagVars) typed() []workdir.VarFlag { return f.Flags[f.First:] }

// In is the directory of a unit.
func (h *Host) In(dir string, env sys.Env, u workdir.Unit) *workdir.Directory {
	if h.Plugins == nil {
		return &workdir.Directory{Dir: dir, Env: env, Unit: u}
	}
	return h.Plugins.Directory.In(dir, env, u)
}

// of returns the Host of a unit.
func (h *Host) of(unit string) workdir.Host {
	if h.Of == nil {
		return workdir.Silent{}
	}
	return h.Of(unit)
}

// User is whose journals are used: the user of the folder that the program works in, or
// without one that of an environment.
func (h *Host) User(environ sys.Env) journal.User {
	if h.Plugins == nil {
		return journal.UserOf(environ)
	}
	return h.Plugins.Directory.User
}

// Files reads files for the whole process.
func (h *Host) Files() *readfile.Kept {
	if h.Plugins == nil {
		return nil
	}
	return h.Plugins.Directory.Files
}

// Engine are the options of an engine in the folder of a unit.
func (h *Host) Engine(at *workdir.Directory, plugins *workdir.Plugins, encrypted workdir.Encrypted) engine.Options {
	out := at.Engine(plugins, encrypted)
	if h.Decorate != nil {
		out.Decorate = h.Decorate(at.Dir)
	}
	switch {
	case h.Plugins == nil:
		out.Services = engine.Services{}
	case h.Provisioners != nil:
		out.Provisioners = h.Provisioners(out.Provisioners)
	}
	return out
}

// Installing is what init is run with in the working directory of a unit.
type Installing struct {
	*workdir.Directory
	Words   []string    // flags of init
	Sources *source.Set // the text of the unit files with the inputs
}
