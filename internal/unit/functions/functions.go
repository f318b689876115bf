package functions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	version "github.com/hashicorp/go-version"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/process"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A CallSite is one expression that calls functions. Only one goroutine calls its methods.
type CallSite interface {
	// At returns the range of the expression.
	At() source.Range
	// Dir returns the directory that get_terragrunt_dir() returns, and from which relative
	// paths are resolved.
	Dir() string
	// FileDir returns the directory of the file that contains the expression. It differs from
	// Dir in an included file.
	FileDir() string
	// Task returns the calling task of evaluation.
	Task() *demand.Task
	// Leaf returns the directory of the evaluated unit. ok is false while values are
	// computed for all units; Waiting is true after such a call.
	Leaf() (dir string, ok bool)
	// Waiting reports whether the value needs the unit and there is none.
	Waiting() bool
	// Reads records that the value depends on a file.
	Reads(path string)
	// HandsIn records that a value comes from the environment, a program or a file of
	// values. call is the text of the call, such as `get_env("X")`.
	HandsIn(value, call string)
	// Included returns the directory of the file that an include block includes: the block
	// with the label, or without an argument the only block. It returns "" if there is
	// none.
	Included(label ...string) (string, error)
	// Imported returns the directory of the file of an import, and the directory of the
	// unit. Without a name, it is the only import. Both are "" if there is none.
	Imported(name ...string) (dir, unit string, err error)
	// WorkingDir returns the directory in which the unit's module runs.
	WorkingDir() (string, error)
	// ReadConfig returns the result of read_terragrunt_config with these arguments.
	ReadConfig(args []cty.Value) (cty.Value, error)
}

// A Library contains the effects and settings of all functions in one estate. It must not
// be changed after its first use, and may be used concurrently. Files is required.
type Library struct {
	Machine  Machine
	Request  Request
	Files    *Files
	ReadFile func(path string) ([]byte, error)
	// Answers caches the results of programs.
	Answers *Answers
	// ConfigName is the default name of unit files.
	ConfigName string
	// Checking means that only files are checked and no command runs. Functions that fail
	// for lack of credentials return unknown values, and so do get_terraform_cli_args, and
	// functions whose program sys.SkipPrograms skips.
	Checking bool
	// UnsetUnknown makes get_env return an unknown value, and no error, if the variable is not set
	// and the call has no default.
	UnsetUnknown bool
	// UnitEnviron returns the environment of child processes and cloud requests for the
	// unit in dir. nil means that all units use Machine.Environ.
	UnitEnviron func(t *demand.Task, dir string) (process.Env, diag.List)
	// Echo receives the output of run_cmd commands, except with --terragrunt-quiet. nil
	// discards it.
	Echo func(text string)
	// Do sends a signed request of a cloud function. nil means that the aws program is
	// used.
	Do func(*http.Request) (*http.Response, error)
}

// A Machine contains the effects that functions have on the machine. A function that needs
// an effect that is not set returns an error.
type Machine struct {
	// Environ is the environment that get_env reads, and the environment of child
	// processes.
	Environ process.Env
	// Run runs child processes (run_cmd, git, sops, aws). nil means that they fail.
	Run func(ctx context.Context, c process.Command) error
	// Now returns the time for timestamp(). nil means that timestamp() fails.
	Now func() time.Time
	// Home returns the user's home directory, for `~`. nil means that paths with `~` fail.
	Home func() (string, error)
}

// A Request is the user's command and flags, as unit files can read them. The zero value
// means no command and no flags.
type Request struct {
	// Command is the command that runs on the unit, such as plan, or "". Args are all its
	// arguments, beginning with the command.
	Command string
	Args    []string
	// Source is the value of the --source flag, or "".
	Source string
	// Features contains the values of --feature flags by name.
	Features map[string]string
	// FeaturesFrom is the environment variable that sets Features, or "" if they are from
	// the command line.
	FeaturesFrom string
	// DownloadDir is the value of the --download-dir flag, or "".
	DownloadDir string
}

// definition is the implementation of one function.
type definition struct {
	min, max int // numbers of arguments; max below 0 means no maximum
	ret      cty.Type
	leaf     bool // the result depends on the unit
	do       func(k *call, args []string) (cty.Value, error)
	dynamic  func(k *call) function.Function // for functions with arguments other than strings
}

// call is one call of a function.
type call struct {
	*Library
	CallSite
	runs int // number of calls of run_cmd without caching so far
}

// needsLeaf reports whether the unit is needed and missing.
func (k *call) needsLeaf() bool {
	_, ok := k.Leaf()
	return !ok
}

// Function returns the function of a name, for calls from a place. ok is false if the name
// is not a function of the unit language.
func (l *Library) Function(name string, at CallSite) (f function.Function, ok bool) {
	def := lookup(name)
	if def == nil {
		return function.Function{}, false
	}
	k := &call{Library: l, CallSite: at}
	if def.dynamic != nil {
		return def.dynamic(k), true
	}
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "args", Type: cty.String, AllowMarked: true, AllowUnknown: true},
		Type:     function.StaticReturnType(def.ret),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, marks, err := def.answer(k, args)
			return v.WithMarks(marks), funcs.Guard(err, args)
		},
	}), true
}

// answer returns the result of a call, and the marks of its arguments.
func (f *definition) answer(k *call, args []cty.Value) (cty.Value, cty.ValueMarks, error) {
	unknown := cty.UnknownVal(f.ret)
	marks := cty.ValueMarks{}
	if err := f.count(len(args)); err != nil {
		return unknown, marks, err
	}
	known := true
	words := make([]string, len(args))
	for i, a := range args {
		bare, more := a.Unmark()
		maps.Copy(marks, more)
		if known = known && bare.IsKnown(); known {
			words[i] = bare.AsString()
		}
	}
	if !known || f.leaf && k.needsLeaf() {
		return unknown, marks, nil
	}
	v, err := f.do(k, words)
	if refused := (*noCredentials)(nil); k.Checking && (errors.As(err, &refused) || errors.Is(err, sys.ErrSkipped)) {
		err, v = nil, unknown
	}
	if err != nil || k.Waiting() {
		return unknown, marks, err
	}
	return v, marks, nil
}

func (f *definition) count(n int) error {
	switch {
	case n < f.min:
		return fmt.Errorf("%s", tooFew(f.min, n))
	case f.max >= 0 && n > f.max:
		return fmt.Errorf("at most %d argument(s) expected, not %d", f.max, n)
	}
	return nil
}

func tooFew(want, n int) string {
	if want == 1 {
		return "an argument is missing"
	}
	return fmt.Sprintf("%d arguments expected, not %d", want, n)
}

func text(f func(k *call) (string, error)) func(*call, []string) (cty.Value, error) {
	return func(k *call, _ []string) (cty.Value, error) {
		s, err := f(k)
		return cty.StringVal(s), err
	}
}

func wordList(words ...string) func(*call, []string) (cty.Value, error) {
	return func(*call, []string) (cty.Value, error) { return stringList(words), nil }
}

func stringList(words []string) cty.Value {
	if len(words) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	vals := make([]cty.Value, len(words))
	for i, w := range words {
		vals[i] = cty.StringVal(w)
	}
	return cty.ListVal(vals)
}

// lookup returns a function, or nil. Functions about paths are in paths.go, about the
// command and the environment in this file, about files in files.go, about programs in
// run.go, and about AWS in aws.go.
func lookup(name string) *definition {
	for _, in := range [...]func(string) *definition{lookupPath, lookupFile, lookupRun} {
		if def := in(name); def != nil {
			return def
		}
	}
	s := cty.String
	switch name {
	case "get_env":
		return &definition{min: 1, max: 2, ret: s, do: (*call).env}
	case "get_platform":
		return &definition{ret: s, do: text(func(*call) (string, error) { return runtime.GOOS, nil })}
	case "get_terraform_command":
		return &definition{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.Request.Command, nil })}
	case "get_terraform_cli_args":
		return &definition{ret: cty.List(s), leaf: true, do: (*call).cliArgs}
	case "get_terragrunt_source_cli_flag":
		return &definition{ret: s, do: text(func(k *call) (string, error) { return k.Request.Source, nil })}
	case "get_terraform_commands_that_need_vars":
		return &definition{ret: cty.List(s), do: wordList("apply", "console", "destroy", "import", "plan", "push", "refresh")}
	case "get_terraform_commands_that_need_input":
		return &definition{ret: cty.List(s), do: wordList("apply", "import", "init", "plan", "refresh")}
	case "get_terraform_commands_that_need_locking":
		return &definition{ret: cty.List(s), do: wordList("apply", "destroy", "import", "plan", "refresh", "taint", "untaint")}
	case "get_terraform_commands_that_need_parallelism":
		return &definition{ret: cty.List(s), do: wordList("apply", "plan", "destroy")}
	case "get_default_retryable_errors":
		return &definition{ret: cty.List(s), do: wordList(DefaultRetryableErrors()...)}
	case "constraint_check":
		return &definition{min: 2, max: 2, ret: cty.Bool, do: constraintCheck}
	case "deep_merge":
		return &definition{dynamic: func(*call) function.Function { return DeepMerge() }}
	}
	return nil
}

// cliArgs implements get_terraform_cli_args.
func (k *call) cliArgs([]string) (cty.Value, error) {
	if k.Checking {
		return cty.UnknownVal(cty.List(cty.String)), nil
	}
	for _, a := range k.Request.Args {
		if strings.Contains(a, "=") { // names of commands and flags are not secret
			k.HandsIn(a, "get_terraform_cli_args()")
		}
	}
	return stringList(k.Request.Args), nil
}

func (k *call) env(args []string) (cty.Value, error) {
	if args[0] == "" {
		return cty.NilVal, errors.New("the name of the environment variable is empty")
	}
	if v, ok := k.Machine.Environ.Lookup(args[0]); ok {
		k.HandsIn(v, "get_env("+strconv.Quote(args[0])+")")
		return cty.StringVal(v), nil
	}
	if len(args) > 1 {
		return cty.StringVal(args[1]), nil
	}
	if k.UnsetUnknown {
		return cty.UnknownVal(cty.String), nil
	}
	return cty.NilVal, fmt.Errorf("the environment variable %s is not set and the call gives no default", args[0])
}

func plainError(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func constraintCheck(_ *call, args []string) (cty.Value, error) {
	v, err := version.NewVersion(args[0])
	if err != nil {
		return cty.NilVal, fmt.Errorf("%q is not a version", args[0])
	}
	want, err := version.NewConstraint(args[1])
	if err != nil {
		return cty.NilVal, fmt.Errorf("%q is not a version constraint", args[1])
	}
	return cty.BoolVal(want.Check(v)), nil
}
