// Package arguments parses the arguments that the extra_arguments blocks of a unit add to a
// command.
//
// Main type: Extra, returned by Read. The one rule: blocks, and arguments and files in them, keep
// the order of a command line, so that the last value of a variable is used.
package arguments

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// Extra contains the parsed arguments that extra_arguments blocks add to a command.
type Extra struct {
	Vars  []workdir.VarFlag
	Env   []string // NAME=VALUE; the last value is used
	Words []string // all arguments in their order; variable files are -var-file arguments
	// Other contains the arguments that a run over several units does not support.
	Other   []string
	Lock    *Lock
	Calls   int      // value of -parallelism; 0 means that it is not set
	Backend []string // values of -backend-config, in their order

	plan plan.Options // options of plan and apply
}

// Lock configures the locking of state. The zero value locks and does not wait.
type Lock struct {
	Off     bool
	Timeout time.Duration
}

// Read parses the blocks that apply to at least one of the commands, in their order. locate
// returns the path of a variable file.
func Read(blocks []unit.ExtraArguments, locate func(name string) string, commands ...string) Extra {
	return read(nil, blocks, locate, commands...)
}

// Init parses the arguments that are added to an automatic init: by TF_CLI_ARGS_init and by the
// blocks that apply to init.
func Init(env sys.Env, blocks []unit.ExtraArguments, locate func(name string) string) (Extra, diag.List) {
	const name = "TF_CLI_ARGS_init"
	words, err := sys.Words(env.Get(name))
	if err != nil {
		return Extra{}, diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "%s: %s", name, err)
	}
	return read(words, blocks, locate, "init"), nil
}

func read(words []string, blocks []unit.ExtraArguments, locate func(name string) string, commands ...string) Extra {
	var x Extra
	r := &reader{Extra: &x, locate: locate, init: slices.Contains(commands, "init")}
	r.read(words)
	for _, block := range blocks {
		if !About(block, commands...) {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(block.EnvVars)) {
			x.Env = append(x.Env, k+"="+block.EnvVars[k])
		}
		r.at = block.At
		r.read(block.Arguments)
		for _, name := range block.RequiredVarFiles {
			r.read([]string{"-var-file=" + name})
		}
		for _, name := range block.OptionalVarFiles {
			if _, err := os.Stat(locate(name)); err == nil {
				r.read([]string{"-var-file=" + name})
			}
		}
	}
	return x
}

// About reports whether a block applies to at least one of the commands.
func About(block unit.ExtraArguments, commands ...string) bool {
	return slices.ContainsFunc(commands, func(name string) bool { return slices.Contains(block.Commands, name) })
}

// A reader adds words to an Extra.
type reader struct {
	*Extra
	locate func(name string) string
	init   bool          // the command is init
	flags  flag.Flags    // set by declare when the first words are read, since most units have none
	at     *source.Range // the block that is being read; nil means the environment

	lock  flag.Lock
	scope flag.Scope
}

// declare sets the flags that a run over several units can apply to one of them.
func (r *reader) declare() {
	x := r.Extra
	r.flags = slices.Concat(
		flag.Vars(&x.Vars), r.lock.Flags(), flag.Refresh(&x.plan, true), r.scope.Flags().Without("target-file", "exclude-file"),
		flag.Flags{flag.Parallelism(&x.Calls)},
	)
	if r.init {
		r.flags = append(r.flags, flag.BackendConfig(&x.Backend))
	}
	for _, name := range []string{"input", "no-color", "compact-warnings", "concise", "auto-approve"} { // the run itself has them
		r.flags = append(r.flags, flag.Ignored(name, "", ""))
	}
}

// read parses words. Words after a -- are not available in a run over several units.
func (r *reader) read(words []string) {
	if len(words) == 0 {
		return
	}
	if r.flags == nil {
		r.declare()
	}
	var rest []string
	if i := slices.Index(words, "--"); i >= 0 {
		words, rest = words[:i], words[i:]
	}
	for f, value := range r.flags.Read(words) {
		word := value
		if f != nil {
			err := f.Set(value)
			if err == nil {
				value, err = r.settle(f.Name, value)
			}
			if word = "-" + f.Name; !f.Switch() || value != "true" {
				word += "=" + value
			}
			if err == nil {
				r.Words = append(r.Words, word)
				continue
			}
		}
		r.Words, r.Other = append(r.Words, word), append(r.Other, word)
	}
	r.Words, r.Other = append(r.Words, rest...), append(r.Other, rest...)
}

// settle completes the value that a flag has set. It returns the value in the form for a command in
// the unit's directory.
func (r *reader) settle(name, value string) (shown string, err error) {
	switch name {
	case "var", "var-file":
		v := &r.Vars[len(r.Vars)-1]
		if v.At = r.at; v.File {
			v.Value = r.locate(value)
		}
		return v.Value, nil
	case "target", "exclude":
		var t addr.Target
		if t, err = addr.ParsePattern(value); name == "target" {
			r.plan.Targets = append(r.plan.Targets, t)
		} else {
			r.plan.Excludes = append(r.plan.Excludes, t)
		}
	case "replace":
		var t addr.Target
		switch t, err = addr.ParsePattern(value); {
		case err != nil:
		case t.IsModule():
			err = errNotInstance
		case t.Pattern != "":
			r.plan.ReplacePatterns = append(r.plan.ReplacePatterns, t)
		default:
			r.plan.Replace = append(r.plan.Replace, t.Instance())
		}
	case "lock", "lock-timeout":
		r.Lock = &Lock{Off: !r.lock.On, Timeout: r.lock.Timeout}
	case "parallelism":
		if r.Calls < 1 {
			err = errRange
		}
	case "refresh-max-age":
		if r.plan.RefreshMaxAge < 0 {
			err = errRange
		}
	}
	return value, err
}

var (
	errRange       = errors.New("out of range")
	errNotInstance = errors.New("the address of a resource instance is needed, not of a module")
)

// Plan returns the options o of a run, extended by those that the blocks add.
func (x *Extra) Plan(o plan.Options) plan.Options {
	o.SkipRefresh = o.SkipRefresh || x.plan.SkipRefresh
	o.MinimalRefresh = o.MinimalRefresh || x.plan.MinimalRefresh
	o.MinimalData = o.MinimalData || x.plan.MinimalData
	o.RefreshMaxAge = cmp.Or(o.RefreshMaxAge, x.plan.RefreshMaxAge)
	o.Targets = slices.Concat(o.Targets, x.plan.Targets)
	o.Excludes = slices.Concat(o.Excludes, x.plan.Excludes)
	o.Replace = slices.Concat(o.Replace, x.plan.Replace)
	o.ReplacePatterns = slices.Concat(o.ReplacePatterns, x.plan.ReplacePatterns)
	return o
}
