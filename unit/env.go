package unit

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/process"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Env contains the effects that the evaluation of unit files may use. The zero Env only
// reads files; functions that need another effect fail. An Env must not be changed after
// NewLoader. Its functions must be safe for concurrent use.
type Env struct {
	// WorkingDir is the absolute directory that relative paths passed to the Loader are
	// resolved from. "" means that paths must be absolute.
	WorkingDir string
	Machine    Machine
	// UnitEnviron returns the environment, with the unit's credentials, of child processes
	// and cloud requests for the unit in dir. Functions that use it are computed once per
	// unit. nil means that all units use Machine.Environ.
	UnitEnviron func(t *Task, dir string) (Environment, diag.List)
	// Echo receives the output of run_cmd commands, except with --terragrunt-quiet. nil
	// discards it.
	Echo func(text string)
	// Do sends a signed request of a cloud function. nil means that the aws program is
	// used.
	Do func(*http.Request) (*http.Response, error)

	// These functions read the file system. nil means those of packages os and path/filepath.
	ReadFile     func(path string) ([]byte, error)
	Stat         func(path string) (fs.FileInfo, error)
	ReadDir      func(path string) ([]fs.DirEntry, error)
	EvalSymlinks func(path string) (string, error)

	// Changed returns the text of a file in another version of the files, if the file has another text
	// there; see Unit.Tracked. Everything else must be the same in both versions: the set of files, the
	// environment, and the other fields of Env. nil means that there is no other version.
	Changed func(path string) (text []byte, ok bool)

	// Parses shares parsed files with other loaders. nil shares none.
	Parses *syntax.Parses

	// Redactor receives the values from the environment and from programs that are part of
	// arguments of a unit. The unit's messages do not show these values, and other reported
	// text should not either. If it is nil, the Loader creates one.
	Redactor *diag.Redactor

	Request Request
	// Checking means that only files are checked and no command runs. Functions that fail
	// for lack of credentials return unknown values, and so does get_terraform_cli_args.
	Checking bool
	// UnsetUnknown makes get_env return an unknown value, and no error, if the variable is not set
	// and the call has no default, so that files can be compared on another machine.
	UnsetUnknown bool
	// UnknownValues makes values.* unknown next to which there is no values file, as in the source of
	// the units of a stack. Otherwise each reference to one is an error.
	UnknownValues bool
	// ConfigName is the name of unit files; "" means terragrunt.hcl.
	ConfigName string

	// Outputs returns the outputs of a dependency. It is called on demand and at most once
	// per target. The target is the ID of a unit or the directory of a stack. ok is false
	// if there are none: the target has no outputs yet or, if v is an empty object, none at
	// all. A nil Outputs means that no target has outputs.
	Outputs OutputsFunc
	// Tolerant makes missing outputs unknown instead of an error, as for render.
	Tolerant bool
	// Rendering makes every output of a dependency without outputs missing, so that try()
	// catches it, as render needs. Otherwise each such output is unknown.
	Rendering bool
}

type (
	// A Task is one sequence of evaluation, used by one goroutine. Loader.Task returns one.
	Task = demand.Task
	// Environment is the environment of a process, as NAME=VALUE pairs.
	Environment = process.Env
	// Command is a child process to run: Path, Args, Dir, Env, Stdin, Stdout, Stderr.
	Command = process.Command

	// Machine contains the effects of functions: Environ, Run, Now and Home.
	Machine = functions.Machine
	// Request is the user's command and flags, as unit files can read them.
	Request = functions.Request
)

// OutputsFunc returns the outputs of a target as an object; see Env.Outputs. Several
// goroutines may call it concurrently, for different targets.
type OutputsFunc func(t *Task, target string, at source.Range) (v cty.Value, ok bool, ds diag.List)

func (e *Env) readFile(path string) ([]byte, error) { return e.reader()(path) }

// reader returns the function that reads files now.
func (e *Env) reader() func(path string) ([]byte, error) {
	if e.ReadFile != nil {
		return e.ReadFile
	}
	return readfile.Whole
}

// tree returns the functions that read the file system.
func (e *Env) tree() functions.Tree {
	out := functions.Tree{ReadFile: e.readFile, Stat: e.Stat, ReadDir: e.ReadDir, EvalSymlinks: e.EvalSymlinks}
	if out.Stat == nil {
		out.Stat = os.Stat
	}
	if out.ReadDir == nil {
		out.ReadDir = os.ReadDir
	}
	if out.EvalSymlinks == nil {
		out.EvalSymlinks = filepath.EvalSymlinks
	}
	return out
}

func (e *Env) configName() string {
	if e.ConfigName == "" {
		return syntax.DefaultName
	}
	return e.ConfigName
}
