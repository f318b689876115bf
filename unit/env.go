package unit

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/readfile"
	"github.com/terrace-iac/terrace/process"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Env is what unit files may reach outside of themselves. Only what is set can
// be reached: the zero Env reads files, and everything else is an error that
// says that it cannot be had here. An Env must not be changed once a Loader has
// it; its functions must be safe to call concurrently.
type Env struct {
	// WorkingDir is the absolute folder that relative paths given to the Loader
	// count from. "" means that they must be absolute.
	WorkingDir string
	Machine    Machine
	// UnitEnviron, if not nil, is the environment of child processes and of the
	// calls of cloud functions for the unit in a folder, with the credentials that
	// belong to it. Functions that use it are then computed once a unit.
	UnitEnviron func(t *Task, dir string) (Environment, diag.List)
	// Echo gets what run_cmd commands print, unless they ask to be quiet. May be nil.
	Echo func(text string)
	// Do sends a signed request of a cloud function. Nil: the aws program is used.
	Do func(*http.Request) (*http.Response, error)

	// ReadFile and Stat are the file system; nil means that of the os package.
	ReadFile func(path string) ([]byte, error)
	Stat     func(path string) (fs.FileInfo, error)

	Request Request
	// Checking says that nothing is to run: what takes credentials that are not there,
	// and the words of the command, are unknown.
	Checking bool
	// ConfigName is the name of unit files; "" means terragrunt.hcl.
	ConfigName string

	// Outputs gives the outputs of a dependency, lazily and at most once for each
	// target: target is the ID of a unit or, for a dependency on a stack, its
	// folder. ok is false where it has none yet, or none at all, which an empty object
	// says. Nil: nothing has outputs.
	Outputs OutputsFunc
	// Tolerant makes outputs that do not exist unknown instead of an error, as
	// render wants it.
	Tolerant bool

	// NoMocks leaves outputs that do not exist unknown where mock outputs would stand
	// for them. It goes with Tolerant.
	NoMocks bool
	// Rendering says besides that a dependency without outputs has no output of any name,
	// so that try() catches it, as render wants it. Else each is unknown.
	Rendering bool
}

// A Task is one sequence of evaluation, used by one goroutine; Loader.Task starts one. An
// Environment is that of a process, as name=value, and a Command a process to run.
type (
	Task        = demand.Task
	Environment = process.Env
	Command     = process.Command
)

// A Machine is what those who evaluate unit files have of the machine: what its zero
// value cannot do is an error for the functions that need it.
type Machine struct {
	// Environ is the environment that get_env reads and that child processes get.
	Environ Environment
	// Run runs child processes (run_cmd, git, sops, aws). Nil: they are errors.
	Run func(ctx context.Context, c Command) error
	// Now is the clock of timestamp(). Nil: that is an error.
	Now func() time.Time
	// Home tells the user's home folder, for `~`. Nil: `~` is an error.
	Home func() (string, error)
	// Answers keeps what programs answered for several loaders. Nil: each loader keeps its
	// own.
	Answers *Answers
}

// Answers are what the programs said that functions of unit files have run, so that
// each runs once. The zero value is empty.
type Answers struct {
	kept parallel.Cache[string, runResult]
}

// A Request is what the user asked for, as far as unit files can tell. Zero means no
// command and no flags.
type Request struct {
	// Command is the command that runs on the unit, such as plan, "" if none, and
	// Args all its words with the command.
	Command string
	Args    []string
	// Source is the value of the --source flag, "" for the units' own.
	Source string
	// Features is the values of --feature flags by name.
	Features map[string]string
	// DownloadDir is the value of the --download-dir flag, "" for the units' own.
	DownloadDir string
}

// OutputsFunc gives the outputs of a target as an object; see Env.Outputs. It may
// be called from several goroutines, for different targets.
type OutputsFunc func(t *Task, target string, at source.Range) (v cty.Value, ok bool, ds diag.List)

// noCredentials is the error of a function that asks for something that only those
// with the right credentials get.
type noCredentials struct {
	what string
	err  error
}

func (e *noCredentials) Error() string { return e.what + ": " + e.err.Error() }

func (e *noCredentials) Unwrap() error { return e.err }

var errNoProcess = errors.New("programs cannot be run here")

func (e *Env) readFile(path string) ([]byte, error) {
	if e.ReadFile != nil {
		return e.ReadFile(path)
	}
	return readfile.Whole(path)
}

func (e *Env) stat(path string) (fs.FileInfo, error) {
	if e.Stat != nil {
		return e.Stat(path)
	}
	return os.Stat(path)
}

func (e *Env) configName() string {
	if e.ConfigName == "" {
		return syntax.DefaultName
	}
	return e.ConfigName
}

// goos is the answer of get_platform.
const goos = runtime.GOOS
