package run

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/settings/tracelog"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
)

// A Host contains the services of the program that units use. Every field may be nil.
type Host struct {
	// Plugins contains the providers of the directory that the program works in. The providers of
	// a unit are found with the same settings in the unit's own directory. nil means that units
	// have only the built-in provider, without provisioners and terraform_remote_state.
	Plugins *workdir.Plugins
	// Vars contains the values that the user gives to the variables of all units. Texts receives
	// the text of variable files, for messages; it may be nil.
	Vars  FlagVars
	Texts *source.Set
	// VarsOfCommand contains the values that the user gives to a Command, which reads its flags
	// itself.
	VarsOfCommand FlagVars
	// Program contains the hosts of units, and initializes their working directories. nil means
	// that units have the host workdir.Silent, and that neither init nor its hooks run.
	Program Program
	// NoInit means that neither init nor its hooks run, except for the init command itself.
	NoInit bool
	// Mocks replaces providers and provisioners. nil keeps them.
	Mocks Mocks
	// Backends contains the types of backends. Each is opened once for all units.
	Backends *backend.Set
	// Worker limits turns and stores journals if the run is a worker's. nil means that it is not.
	Worker states.Worker
	// CopiedTo is the directory that contains a copy of the estate's files from another machine.
	// "" means that the estate is used in its original directory.
	CopiedTo string
	// KeepSegments configures whether journals of applies are also kept in the stores of the
	// states.
	KeepSegments workdir.KeepSegments
	// Bootstrap configures whether the stores of states are created before they are used.
	Bootstrap states.Bootstrapping
	// Executable is the path of the program, for hooks that call it. "" means "terrace".
	Executable string
}

// A Program is the program around an estate. Its methods may be called concurrently.
type Program interface {
	states.Hosts
	// Init installs modules and providers into the working directory of a unit. The hooks of init
	// run around it.
	Init(ctx context.Context, in Installing) diag.List
}

// Mocks replaces parts of engines, for tests.
type Mocks interface {
	// Decorate returns the engine's Decorate function for a unit's working directory.
	Decorate(dir string) func(addr.Provider, provider.Factory) provider.Factory
	// Provisioners returns the provisioners that replace p.
	Provisioners(p engine.Provisioners) engine.Provisioners
}

// initializes reports whether init runs automatically.
func (h *Host) initializes() bool { return h.Program != nil && !h.NoInit }

// FlagVars contains the values of variables that the user gives by flags. Paths in it are
// absolute.
type FlagVars struct {
	Flags []workdir.VarFlag
	// First is the number of leading flags that come from the environment. Values in a unit's
	// file override these, and the other flags override the unit's file.
	First int
}

// around returns the flags with the values of a unit's file inserted at their precedence.
func (f FlagVars) around(added []workdir.VarFlag) []workdir.VarFlag {
	return slices.Concat(f.Flags[:f.First], added, f.Flags[f.First:])
}

// typed returns the flags of the command line.
func (f FlagVars) typed() []workdir.VarFlag { return f.Flags[f.First:] }

// In returns the directory dir of the unit u, with the environment env.
func (h *Host) In(dir string, env sys.Env, u workdir.UnitSettings) *workdir.Directory {
	if h.Plugins == nil {
		return &workdir.Directory{Dir: dir, Env: env, Unit: u}
	}
	return h.Plugins.Directory.In(dir, env, u)
}

// shown returns a path relative to the directory of the program, with slashes.
func (h *Host) shown(path string) string {
	if h.Plugins == nil {
		return path
	}
	return sys.RelativeTo(h.Plugins.Directory.Dir, path)
}

// log writes to the trace log.
func (h *Host) log(level tracelog.Level, format string, args ...any) {
	if h.Plugins != nil {
		h.Plugins.Directory.Log.Printf(level, format, args...)
	}
}

// emptyDir returns the path of the empty directory in the user's cache, or "" without a cache. The
// directory may not exist.
func (h *Host) emptyDir() string {
	if h.Plugins == nil || h.Plugins.Directory.CacheDir() == "" {
		return ""
	}
	return filepath.Join(h.Plugins.Directory.CacheDir(), "empty")
}

// of returns the workdir.Host of a unit, which is never nil.
func (h *Host) of(unit string) workdir.Host {
	if h.Program == nil {
		return workdir.Silent{}
	}
	return h.Program.UnitHost(unit)
}

// User returns the user whose journals are used: the user of the program's directory or, without
// Plugins, the user of environ.
func (h *Host) User(environ sys.Env) journal.User {
	if h.Plugins == nil {
		return journal.UserOf(environ)
	}
	return h.Plugins.Directory.User
}

// Files returns the file reader that is shared by the whole process. It may be nil.
func (h *Host) Files() *readfile.Kept {
	if h.Plugins == nil {
		return nil
	}
	return h.Plugins.Directory.Files
}

// Engine returns the options of an engine in the directory of a unit.
func (h *Host) Engine(at *workdir.Directory, plugins *workdir.Plugins, encrypted workdir.Encrypted) engine.Options {
	out := at.Engine(plugins, encrypted)
	if h.Mocks != nil {
		out.Decorate = h.Mocks.Decorate(at.Dir)
	}
	switch {
	case h.Plugins == nil:
		out.Services = engine.Services{}
	case h.Mocks != nil:
		out.Provisioners = h.Mocks.Provisioners(out.Provisioners)
	}
	return out
}

// Installing contains the arguments of init in the working directory of a unit.
type Installing struct {
	*workdir.Directory
	Words   []string    // flags of init
	Sources *source.Set // the source text of the unit files, for messages about inputs
}
