// Package workdir is one opened directory of configuration: a directory by itself, the
// working directory of a unit, or the one that an embedding program opens.
//
// Main types: Directory, the place with what the program brings; Host, the program around it;
// Loaded, its configuration with the values of variables; StatePlace and OpenState, its state;
// Operation, what is done with them. The one rule: nothing is shown here, and nobody is asked
// except through the Host.
package workdir

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/tracelog"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
)

// A Directory is a directory of configuration with everything that a program brings to it.
// Dir, Env, Now, Run and Backends are required. The command line, the run of a unit and an
// embedding program make one each and copy none of its fields.
type Directory struct {
	Dir    string // absolute
	Launch string // the directory that the program was started in; "" means Dir
	Env    sys.Env
	User   journal.User // of the environment that the program was started with
	Host   Host         // nil means Silent

	Now        func() time.Time
	Sleep      func(ctx context.Context, d time.Duration) error // how stores pause; nil: as long as they say
	Stderr     io.Writer                                        // where plugins write; nil discards
	Run        func(ctx context.Context, p sys.Command) error
	Executable func() (string, error) // the path of the running program
	NoPrograms bool                   // Run refuses everything, and providers are not started either

	// Providers are those that the program has itself: no package of them is installed, and
	// none is in the lock file.
	Providers map[addr.Provider]provider.Factory
	// Provisioners are types that the program has besides the built-in ones; may be nil.
	Provisioners engine.Provisioners

	Hashes   *install.Hashes     // of packages that were verified, for the whole process
	Files    *readfile.Kept      // reads files, for the whole process; nil: each is read anew
	Backends func() *backend.Set // those of the process
	Log      *tracelog.Log       // nil: nobody wants one
	Set      *source.Set         // gets the texts of files

	// Unit is what a unit adds. nil outside of units.
	Unit Unit
	// Tolerant makes errors in the values of the unit warnings.
	Tolerant bool
	// Sources are the configuration files of a unit's directory, each of which is read once;
	// nil: they are read anew.
	Sources *engine.Sources
	// ownSources means that Sources are of this directory alone, so that their texts are in Set.
	ownSources bool
	// View is the directory of a unit for commands that only look, which is not made for
	// them; nil: what lies on disk.
	View config.FS
	// Keep is the directory for journals and for states that cannot be written, since the
	// working directory of a unit may be a cache; "" means Dir.
	Keep string
}

// host returns the Host.
func (f *Directory) host() Host {
	if f.Host == nil {
		return Silent{}
	}
	return f.Host
}

// In returns the directory of a unit, for the same program. env is the environment there.
func (f *Directory) In(dir string, env sys.Env, u Unit) *Directory {
	n := *f
	n.Dir, n.Launch, n.Env, n.Unit = dir, dir, env, u
	n.Tolerant, n.Sources, n.ownSources, n.View, n.Keep = false, nil, false, nil, ""
	return &n
}

// KeepDir is the directory for what must outlive the working directory.
func (f *Directory) KeepDir() string {
	if f.Keep != "" {
		return f.Keep
	}
	return f.Dir
}

// Path makes a path absolute: a relative one is relative to the directory.
func (f *Directory) Path(name string) string { return sys.Join(f.Dir, name) }

// WithoutPrograms refuses all programs from now on.
func (f *Directory) WithoutPrograms() { f.NoPrograms, f.Run = true, sys.RefusePrograms }

// Home returns the user's home directory, or "" if the environment names none.
func (f *Directory) Home() string { return f.Env.Home() }

// HomeOrError is Home, for functions of the language.
func (f *Directory) HomeOrError() (string, error) {
	if h := f.Home(); h != "" {
		return h, nil
	}
	return "", errors.New("the environment names no home directory")
}

// DataDir returns the data directory of the program, relative to Dir or absolute.
func (f *Directory) DataDir() string { return selection.DataDir(f.Env) }

// DataPath returns the path of a file in the data directory.
func (f *Directory) DataPath(names ...string) string {
	return filepath.Join(append([]string{sys.Join(f.Dir, f.DataDir())}, names...)...)
}

// CacheDir returns the cache directory, which all directories of a user share. Everything in it
// can be created again. It returns "" if the environment names none.
func (f *Directory) CacheDir() string {
	if base := f.Env.Get("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "terrace")
	}
	if home := f.Home(); home != "" {
		return filepath.Join(home, ".cache", "terrace")
	}
	return ""
}

// Settings reads the user's CLI configuration.
func (f *Directory) Settings() (*cliconfig.Config, diag.List) {
	return cliconfig.Load(f.Files, f.Env, f.Home(), f.Launch)
}

// Backend returns the selection of the backend in the directory.
func (f *Directory) Backend() selection.Dir {
	return selection.Dir{
		Backends: f.Backends(), User: f.User, Path: f.Dir, Data: f.DataPath(), Env: f.Env,
		Default: kinds.Default, Program: "terrace", Product: "Terrace", Outside: f.locate(),
	}
}

// locate returns a function that adds source ranges to messages about a backend that a unit
// configures. It returns nil if there is no unit.
func (f *Directory) locate() func(diag.List) diag.List {
	if f.Unit == nil {
		return nil
	}
	return f.Unit.Locate
}

// Workspace returns the selected workspace: that of TF_WORKSPACE, else that of the data directory,
// else the default one.
func (f *Directory) Workspace() (string, diag.List) {
	name, err := selection.Workspace(f.Env, f.DataPath())
	if err != nil {
		return "", diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the selected workspace", "The file that names the selected workspace cannot be read: %s.", err)
	}
	if !store.ValidWorkspace(name) {
		return "", InvalidWorkspace(name)
	}
	return name, nil
}

// InvalidWorkspace says that a workspace cannot have a name.
func InvalidWorkspace(name string) diag.List {
	return diag.Errorf(diag.CodeStateWorkspace, nil, "Invalid workspace name", "The workspace name %q is not allowed. The name must contain only URL safe characters, and no path separators.", name)
}

// EnvironmentEncryption is what TF_ENCRYPTION says alone; nil for nothing.
func (f *Directory) EnvironmentEncryption() (*encryption.Config, diag.List) {
	return encryption.Parse(nil, f.Env.Get(encryption.Variable), encryption.Constant, f.Backends().Services(f.Dir, f.Env))
}

// Engine returns the options of an engine in the directory, without those of an operation. nil
// plugins mean that only the built-in provider is available. encrypted returns the encryption.
func (f *Directory) Engine(plugins *Plugins, encrypted Encrypted) engine.Options {
	out := engine.Options{
		Dir: f.Dir, LaunchDir: f.Launch, DataDir: f.DataDir(), Environ: f.Env, Now: f.Now, Stderr: f.Stderr, ReadFile: f.Files.Whole,
		Services: f.Services(encrypted),
	}
	if plugins != nil {
		out.Providers = plugins
	}
	return out
}
