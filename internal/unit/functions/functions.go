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
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Place is one expression whose functions are called. Calls of one place come from
// one goroutine.
type Place interface {
	// At is where the expression stands.
	At() source.Range
	// Dir is the folder that get_terragrunt_dir() gives there, and that relative paths
	// count from.
	Dir() string
	// Task is the task of evaluation that calls.
	Task() *demand.Task
	// Leaf is the folder of the unit that is evaluated. It is not ok in what is
	// evaluated for all units; the place is Waiting then.
	Leaf() (dir string, ok bool)
	// Waiting tells that what is evaluated needs the unit, which is not there.
	Waiting() bool
	// Reads notes that the value depends on a file.
	Reads(path string)
	// HandsIn notes that a value comes from the environment, a program or a file of values,
	// by a call such as `get_env("X")`.
	HandsIn(value, call string)
	// Included is the folder of the file that the include block with a label includes,
	// or the only one without a label; "" if there is none.
	Included(label ...string) (string, error)
	// Imported is the folder of the import of a name, or of the only one without a
	// name, and the unit's. Both are "" where there is none.
	Imported(name ...string) (dir, unit string, err error)
	// WorkingDir is the folder that the module of the unit will run in.
	WorkingDir() (string, error)
	// ReadConfig is what read_terragrunt_config gives with these arguments.
	ReadConfig(args []cty.Value) (cty.Value, error)
}

// A Library is what the functions of one estate reach. It must not be changed once it
// is used; it may be used concurrently. Files is required.
type Library struct {
	Machine  Machine
	Request  Request
	Files    *Files
	ReadFile func(path string) ([]byte, error)
	// Answers keeps what programs answered.
	Answers *Answers
	// ConfigName is the name of unit files.
	ConfigName string
	// Checking says that nothing is to run: what takes credentials that are not there,
	// and the words of the command, are unknown.
	Checking bool
	// UnitEnviron, if not nil, is the environment of child processes and of the calls of
	// cloud functions for the unit in a folder.
	UnitEnviron func(t *demand.Task, dir string) (process.Env, diag.List)
	// Echo gets what run_cmd commands print, unless they ask to be quiet. May be nil.
	Echo func(text string)
	// Do sends a signed request of a cloud function. Nil: the aws program is used.
	Do func(*http.Request) (*http.Response, error)
}

// A Machine is what those who evaluate unit files have of the machine: what its zero
// value cannot do is an error for the functions that need it.
type Machine struct {
	// Environ is the environment that get_env reads and that child processes get.
	Environ process.Env
	// Run runs child processes (run_cmd, git, sops, aws). Nil: they are errors.
	Run func(ctx context.Context, c process.Command) error
	// Now is the clock of timestamp(). Nil: that is an error.
	Now func() time.Time
	// Home tells the user's home folder, for `~`. Nil: `~` is an error.
	Home func() (string, error)
	// Answers keeps what programs answered for several loaders. Nil: each loader keeps its
	// own.
	Answers *Answers
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
	// FeaturesFrom is the environment variable that stood in for the flags, "" where
	// the command line has them.
	FeaturesFrom string
	// DownloadDir is the value of the --download-dir flag, "" for the units' own.
	DownloadDir string
}

// definition is one function: its result and what makes it.
type definition struct {
	min, max int // arguments; max below 0: any number
	ret      cty.Type
	leaf     bool // depends on the unit
	do       func(k *call, args []string) (cty.Value, error)
	dynamic  func(k *call) function.Function // for those that take other things than text
}

// call is where a function is called.
type call struct {
	*Library
	Place
	runs int // how often run_cmd was called in it without being kept
}

// needsLeaf makes the answer wait for the unit.
func (k *call) needsLeaf() bool {
	_, ok := k.Leaf()
	return !ok
}

// Function is the function of a name as a place calls it. ok is false for a name that is
// none of the unit language.
func (l *Library) Function(name string, at Place) (f function.Function, ok bool) {
	def := lookup(name)
	if def == nil {
		return function.Function{}, false
	}
	k := &call{Library: l, Place: at}
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

// answer is what a call gives, and the marks of its arguments.
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
	if refused := (*noCredentials)(nil); k.Checking && errors.As(err, &refused) {
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

// lookup finds a function, or nil. Those about paths stand in paths.go, those about the
// command and the environment here, those that read files in files.go, those that run
// programs in run.go and those of AWS in aws.go.
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

// cliArgs is get_terraform_cli_args.
func (k *call) cliArgs([]string) (cty.Value, error) {
	if k.Checking {
		return cty.UnknownVal(cty.List(cty.String)), nil
	}
	for _, a := range k.Request.Args {
		if strings.Contains(a, "=") { // the names of commands and flags are no secrets
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
