// Package workdir is a folder of configuration as a program works in it: what belongs to
// the place (environment, data folder, selected workspace) and what the program brings
// (settings of the user, packages of providers, backends, provisioners).
//
// Main types: Folder; Plugins, its providers. The one rule: nothing is shown and nobody is
// asked here, so that the command line, the turns of units and embedding programs open
// their folders alike.
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
	"github.com/terrace-iac/terrace/event"
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

// A Directory is where a program works, and with what. Dir, Env and Now are required.
type Directory struct {
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

	Set   *source.Set // gets the texts of files
	Event event.Sink  // hears what happens; nil: nobody

	// Ask asks for the value of a variable. nil: nobody can be asked.
	Ask func(ctx context.Context, v *config.Variable) (string, error)
	// Expect is called with how many bytes of memory are about to be used. It may be nil.
	Expect func(bytes int64)
	// Beside is called when the configuration has plugins, which are about to work beside
	// this process. It may be nil.
	Beside func()
	// Running gets what ends the providers once they may run, and nil when they have ended.
	// It may be nil.
	Running func(end func())
	// Waiting is called when the lock of a state is waited for. It may be nil.
	Waiting func(holder *store.LockInfo)

	Unit Unit
}

// A Unit is what a unit adds to the folder that it works in. The zero value adds nothing.
type Unit struct {
	// Values are the values that the unit gives the variables of the root module.
	Values func(ctx context.Context, values map[string]engine.InputValue, root *config.Module) diag.List
	// Value is the one that the unit gives a variable, for sources of modules; false: none.
	Value engine.ValueFunc
	// Tolerant says that what is wrong with these values is no error.
	Tolerant bool
	// Sources are the files of the folder, each of which is read once; nil: they are read
	// anew.
	Sources *engine.Sources
	// Files is the folder for commands that only look, which is not made for them; nil: what
	// lies on disk.
	Files config.FS
	// KeepDir is the folder for journals and for states that cannot be written, since the
	// working folder may be a cache; "" is the working folder.
	KeepDir string
}

// ProgramEnv returns the environment of the programs that provisioners start.
type ProgramEnv = func(ctx context.Context) sys.Env

// In is another folder that the same program works in, with its environment there and that
// of the programs that provisioners start; nil: the same.
func (f *Directory) In(dir string, env sys.Env, programs ProgramEnv) *Directory {
	n := *f
	n.Dir, n.Launch, n.Env, n.Programs = dir, dir, env, programs
	return &n
}

// Home is the user's home folder, or "" if the environment names none.
func (f *Directory) Home() string { return f.Env.Home() }

// HomeOrError is Home, for functions of the language.
func (f *Directory) HomeOrError() (string, error) {
	if h := f.Home(); h != "" {
		return h, nil
	}
	return "", errors.New("the environment names no home folder")
}

// DataDir is the folder of the program's own files, relative to Dir or absolute.
func (f *Directory) DataDir() string { return selection.DataDir(f.Env) }

// DataPath is the path of a file in the data folder.
func (f *Directory) DataPath(names ...string) string {
	return filepath.Join(append([]string{sys.Join(f.Dir, f.DataDir())}, names...)...)
}

// CacheDir is the folder for what all folders of a user share and what can be made again;
// "" if the environment names none.
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

// Backend tells which backend the folder uses.
func (f *Directory) Backend() selection.Dir {
	return selection.Dir{
		Backends: f.Backends(), User: f.User, Path: f.Dir, Data: f.DataPath(), Env: f.Env,
		Default: kinds.Default, Program: "terrace", Product: "Terrace", Outside: f.Locate,
	}
}

// Workspace is the selected workspace: TF_WORKSPACE, else what the data folder says, else
// the default one.
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

// Engine are the options of an engine on the folder, but for what it is to do: its
// providers are plugins, nil for the built-in one alone, and encrypted is how it encrypts.
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
