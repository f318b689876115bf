package unit

import (
	"io/fs"
	"net/http"
	"os"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/process"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/unit/functions"
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

	// Redactor gets the values from the environment and from programs that flow into
	// arguments about a unit: its messages do not show them, and no other text that is
	// reported should. Nil: the Loader makes one.
	Redactor *diag.Redactor

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

type (
	// A Task is one sequence of evaluation, used by one goroutine. Loader.Task starts one.
	Task = demand.Task
	// Environment is the environment of a process, as NAME=VALUE pairs.
	Environment = process.Env
	// Command is a child process to run: Path, Args, Dir, Env, Stdin, Stdout, Stderr.
	Command = process.Command

	// Machine is what functions of unit files use of the machine: Environ, Run, Now, Home
	// and Answers.
	Machine = functions.Machine
	// Answers keeps the results of programs, for several loaders. The zero value is ready.
	Answers = functions.Answers
	// Request is what the user asked for, as far as unit files can read it: Command, Args,
	// Source, Features, FeaturesFrom and DownloadDir.
	Request = functions.Request
)

// OutputsFunc gives the outputs of a target as an object; see Env.Outputs. It may
// be called from several goroutines, for different targets.
type OutputsFunc func(t *Task, target string, at source.Range) (v cty.Value, ok bool, ds diag.List)

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
