// Package workdir opens a directory of configuration, loads it, and runs operations on its state. The
// directory is a plain directory, the working directory of a unit, or one that an embedding program
// opens.
//
// Main types: Directory, the directory with the settings and services of the program; Host, the
// program that works with it; Loaded, its configuration with the values of variables; StatePlace and
// OpenState, its state; Operation, a plan, apply or import. The one rule: output and questions to the
// user go through the Host only.
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
	"github.com/terrace-iac/terrace/internal/provider/schemacache"
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

// A Directory is a directory of configuration with the settings and services of the program. Dir, Env,
// Now, Run and Backends are required. The command line, the run of a unit and an embedding program
// create one each.
type Directory struct {
	Dir    string // absolute
	Launch string // directory in which the program was started; "" means Dir
	Env    sys.Env
	User   journal.User // from the environment in which the program was started
	Host   Host         // nil means Silent

	Now        func() time.Time
	Sleep      func(ctx context.Context, d time.Duration) error // used by stores between retries; nil waits for the given time
	Stderr     io.Writer                                        // receives the output of plugins; nil discards it
	Run        func(ctx context.Context, p sys.Command) error
	Executable func() (string, error) // returns the path of the running program
	NoPrograms bool                   // Run returns an error for every program, and providers are not started

	// KeptSchemas makes the schemas that earlier commands kept available although NoPrograms is set, also
	// those of providers that are not installed in the directory.
	KeptSchemas bool

	// Providers contains the providers that the embedding program implements. They have no package
	// and no entry in the lock file.
	Providers map[addr.Provider]provider.Factory
	// Provisioners contains provisioners in addition to the built-in ones; may be nil.
	Provisioners engine.Provisioners

	Hashes   *install.Hashes     // hashes of verified packages, for the whole process
	Schemas  schemacache.Cache   // schemas of provider packages from earlier commands; the zero value has none
	Files    *readfile.Kept      // reads files, with a cache for the whole process; nil reads without a cache
	Backends func() *backend.Set // returns the backends of the process
	Log      *tracelog.Log       // nil disables the log
	Set      *source.Set         // receives the texts of files, for messages

	// Unit contains the settings of the unit. nil means that the directory is not that of a unit.
	Unit UnitSettings
	// Tolerant turns errors in the values of the unit into warnings.
	Tolerant bool
	// Sources reads each configuration file once. nil means that files are read again by each
	// step.
	Sources *engine.Sources
	// ownSources means that no other directory uses Sources, so that the texts are in Set.
	ownSources bool
	// View is the file system of a unit's working directory for commands that only read, for which
	// that directory is not created. nil means the files on disk.
	View config.FS
	// Keep is the directory for journals and for states that cannot be written to their store. The
	// working directory of a unit may be a cache, which the user may delete. "" means Dir.
	Keep string
}

// host returns the Host, or Silent if it is nil.
func (f *Directory) host() Host {
	if f.Host == nil {
		return Silent{}
	}
	return f.Host
}

// In returns the directory of a unit, with the services of f. env is the environment of the unit.
func (f *Directory) In(dir string, env sys.Env, u UnitSettings) *Directory {
	n := *f
	n.Dir, n.Launch, n.Env, n.Unit = dir, dir, env, u
	n.Tolerant, n.Sources, n.ownSources, n.View, n.Keep = false, nil, false, nil, ""
	return &n
}

// KeepDir returns the directory for journals and for states that cannot be written to their store.
func (f *Directory) KeepDir() string {
	if f.Keep != "" {
		return f.Keep
	}
	return f.Dir
}

// Path returns the absolute path of name, which may be relative to the directory.
func (f *Directory) Path(name string) string { return sys.Join(f.Dir, name) }

// WithoutPrograms makes Run return an error for every program. Providers are not started either.
func (f *Directory) WithoutPrograms() { f.NoPrograms, f.Run = true, sys.RefusePrograms }

// Home returns the user's home directory, or "" if the environment names none.
func (f *Directory) Home() string { return f.Env.Home() }

// HomeOrError is like Home, but returns an error if the environment names no home directory.
func (f *Directory) HomeOrError() (string, error) {
	if h := f.Home(); h != "" {
		return h, nil
	}
	return "", errors.New("the environment names no home directory")
}

// DataDir returns the data directory, such as .terraform: an absolute path, or one relative to Dir.
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

// RecordPackages lets commands use what earlier commands on this machine have recorded about provider
// packages: their hashes and their schemas. The environment can request that each command reads the
// packages, or starts the providers.
func (f *Directory) RecordPackages(machine string) {
	cache := f.CacheDir()
	if cache == "" {
		return
	}
	if f.Env.Get("TERRACE_VERIFY_PACKAGES") == "" {
		f.Hashes.Records = install.Records{Dir: filepath.Join(cache, "verified"), Machine: machine, Now: f.Now}
	}
	if f.Env.Get("TERRACE_READ_SCHEMAS") == "" {
		f.Schemas = schemacache.Cache{Dir: filepath.Join(cache, "schemas"), Machine: machine, Now: f.Now}
	}
}

// Settings reads the user's CLI configuration.
func (f *Directory) Settings() (*cliconfig.Config, diag.List) {
	return cliconfig.Load(f.Files, f.Env, f.Home(), f.Launch)
}

// Backend returns the selection of the backend in the directory.
func (f *Directory) Backend() selection.Directory {
	return selection.Directory{
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

// Workspace returns the name of the selected workspace: from TF_WORKSPACE, from the data directory, or
// "default".
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

// InvalidWorkspace returns the error for an invalid workspace name.
func InvalidWorkspace(name string) diag.List {
	return diag.Errorf(diag.CodeStateWorkspace, nil, "Invalid workspace name", "The workspace name %q is not allowed. The name must contain only URL safe characters, and no path separators.", name)
}

// EnvironmentEncryption returns the encryption settings of TF_ENCRYPTION, or nil if it is not set.
func (f *Directory) EnvironmentEncryption() (*encryption.Config, diag.List) {
	return encryption.Parse(nil, f.Env.Get(encryption.Variable), encryption.Constant, f.Backends().Services(f.Dir, f.Env))
}

// Engine returns the options of an engine in the directory, without those of an operation. If plugins
// is nil, only the built-in provider is available. encrypted returns the encryption settings; nil
// makes terraform_remote_state unavailable.
func (f *Directory) Engine(plugins *Plugins, encrypted Encrypted) engine.Options {
	out := engine.Options{
		Dir: f.Dir, LaunchDir: f.Launch, DataDir: f.DataDir(), Environ: f.Env, Now: f.Now, Stderr: f.Stderr, ReadFile: f.Files.Whole,
		Services: f.Services(encrypted),
	}
	if f.Files.Fixed() {
		out.Stat, out.ReadDir, out.Readlink = f.Files.Stat, f.Files.ReadDir, f.Files.Readlink
	}
	if plugins != nil {
		out.Providers = plugins
	}
	return out
}
