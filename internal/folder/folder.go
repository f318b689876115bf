// Package folder is a folder of configuration as a program works in it: what belongs to
// the place (environment, data folder, selected workspace) and what the program brings
// (settings of the user, packages of providers, backends, provisioners).
//
// Main types: Folder; Plugins, its providers. The one rule: nothing is shown and nobody is
// asked here, so that the command line, the turns of units and embedding programs open
// their folders alike.
package folder

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/tracelog"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/state/backend/workdir"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/provider"
)

// A Folder is where a program works, and with what. Dir, Env and Now are required.
type Folder struct {
	Dir    string // absolute
	Launch string // the folder that the program was started in; "" means Dir
	Env    sys.Env
	User   journal.User // of the environment that the program was started with
	Now    func() time.Time
	Sleep  func(ctx context.Context, d time.Duration) error // how stores pause; nil: as long as they say
	Stderr io.Writer                                        // where plugins write; nil discards

	Run        func(ctx context.Context, p sys.Command) error
	Executable func() (string, error) // the path of the running program
	NoPrograms bool                   // Run refuses everything, and providers are not started either
	Programs   ProgramEnv             // the environment of the programs that provisioners start; nil: Env
	// Locate gives messages about the backend their place in what configures it from
	// outside, the file of a unit; nil: nothing does.
	Locate func(diag.List) diag.List

	// Providers are those that the program has itself: no package of them is installed, and
	// none is in the lock file.
	Providers map[addr.Provider]provider.Factory
	// Provisioners are types that the program has besides the built-in ones; may be nil.
	Provisioners engine.Provisioners

	Hashes   *install.Hashes     // of packages that were verified, for the whole process
	Files    *readfile.Kept      // reads files, for the whole process; nil: each is read anew
	Backends func() *backend.Set // those of the process
	Log      *tracelog.Log       // nil: nobody wants one
	Wait     func(text string)   // hears what is waited for when that takes long
}

// ProgramEnv returns the environment of the programs that provisioners start.
type ProgramEnv = func(ctx context.Context) sys.Env

// In is another folder that the same program works in, with its environment there and that
// of the programs that provisioners start; nil: the same.
func (f *Folder) In(dir string, env sys.Env, programs ProgramEnv) *Folder {
	n := *f
	n.Dir, n.Launch, n.Env, n.Programs = dir, dir, env, programs
	return &n
}

// Home is the user's home folder, or "" if the environment names none.
func (f *Folder) Home() string { return f.Env.Home() }

// HomeOrError is Home, for functions of the language.
func (f *Folder) HomeOrError() (string, error) {
	if h := f.Home(); h != "" {
		return h, nil
	}
	return "", errors.New("the environment names no home folder")
}

// DataDir is the folder of the program's own files, relative to Dir or absolute.
func (f *Folder) DataDir() string { return workdir.DataDir(f.Env) }

// DataPath is the path of a file in the data folder.
func (f *Folder) DataPath(names ...string) string {
	return filepath.Join(append([]string{sys.Join(f.Dir, f.DataDir())}, names...)...)
}

// CacheDir is the folder for what all folders of a user share and what can be made again;
// "" if the environment names none.
func (f *Folder) CacheDir() string {
	if base := f.Env.Get("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "terrace")
	}
	if home := f.Home(); home != "" {
		return filepath.Join(home, ".cache", "terrace")
	}
	return ""
}

// Settings reads the user's CLI configuration.
func (f *Folder) Settings() (*cliconfig.Config, diag.List) {
	return cliconfig.Load(f.Files, f.Env, f.Home(), f.Launch)
}

// Backend tells which backend the folder uses.
func (f *Folder) Backend() workdir.Dir {
	return workdir.Dir{
		Backends: f.Backends(), User: f.User, Path: f.Dir, Data: f.DataPath(), Env: f.Env,
		Default: kinds.Default, Program: "terrace", Product: "Terrace", Outside: f.Locate,
	}
}

// Workspace is the selected workspace: TF_WORKSPACE, else what the data folder says, else
// the default one.
func (f *Folder) Workspace() (string, diag.List) {
	name, err := workdir.Workspace(f.Env, f.DataPath())
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
func (f *Folder) EnvironmentEncryption() (*encryption.Config, diag.List) {
	return encryption.Parse(nil, f.Env.Get(encryption.Variable), encryption.Constant, f.Backends().Services(f.Dir, f.Env))
}

// Engine are the options of an engine on the folder, but for what it is to do: its
// providers are plugins, nil for the built-in one alone, and encrypted is how it encrypts.
func (f *Folder) Engine(plugins *Plugins, encrypted Encrypted) engine.Options {
	out := engine.Options{
		Dir: f.Dir, LaunchDir: f.Launch, DataDir: f.DataDir(), Environ: f.Env, Now: f.Now, Stderr: f.Stderr, ReadFile: f.Files.Whole,
		Services: f.Services(encrypted),
	}
	if plugins != nil {
		out.Providers = plugins
	}
	return out
}
