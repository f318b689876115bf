// Package arguments parses the arguments that the extra_arguments blocks of a unit add to a
// command.
//
// Main type: Extra, returned by Read. The one rule: blocks, and arguments and files in them, keep
// the order of a command line, so that the last value of a variable is used.
package arguments

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/workdir"
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

	at *source.Range // the block that is being read; nil means the environment
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
	file := func(name string) {
		x.Vars = append(x.Vars, workdir.VarFlag{File: true, Value: locate(name), At: x.at})
		x.Words = append(x.Words, "-var-file="+locate(name))
	}
	x.read(words, file)
	for _, block := range blocks {
		if !About(block, commands...) {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(block.EnvVars)) {
			x.Env = append(x.Env, k+"="+block.EnvVars[k])
		}
		x.at = block.At
		x.read(block.Arguments, file)
		for _, name := range block.RequiredVarFiles {
			file(name)
		}
		for _, name := range block.OptionalVarFiles {
			if _, err := os.Stat(locate(name)); err == nil {
				file(name)
			}
		}
	}
	if !slices.Contains(commands, "init") { // only init has the flag
		for _, text := range x.Backend {
			x.Other = append(x.Other, "-backend-config="+text)
		}
		x.Backend = nil
	}
	return x
}

// About reports whether a block applies to at least one of the commands.
func About(block unit.ExtraArguments, commands ...string) bool {
	return slices.ContainsFunc(commands, func(name string) bool { return slices.Contains(block.Commands, name) })
}

// read parses arguments.
func (x *Extra) read(args []string, file func(name string)) {
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		takes := name == "var" || name == "var-file" || name == "lock-timeout" || name == "parallelism" || name == "backend-config" || name == "target" || name == "exclude" || name == "replace"
		if takes && !has && i+1 < len(args) {
			i++
			value = args[i]
		}
		if name == "var-file" {
			file(value)
			continue
		}
		x.Words = append(x.Words, args[i])
		if takes && !has {
			x.Words[len(x.Words)-1] = "-" + name + "=" + value
		}
		if !x.means(name, value) {
			x.Other = append(x.Other, args[i])
		}
	}
}

// means parses one argument. It returns false if a run over several units does not support it.
func (x *Extra) means(name, value string) bool {
	if x.Lock == nil && (name == "lock" || name == "lock-timeout") {
		x.Lock = &Lock{}
	}
	switch name {
	case "var":
		x.Vars = append(x.Vars, workdir.VarFlag{Value: value, At: x.at})
	case "input", "no-color", "compact-warnings", "concise", "auto-approve":
	case "target", "exclude":
		t, err := addr.ParseTarget(value)
		if name == "target" {
			x.plan.Targets = append(x.plan.Targets, t)
		} else {
			x.plan.Excludes = append(x.plan.Excludes, t)
		}
		return err == nil
	case "replace":
		i, err := addr.ParseInstance(value)
		x.plan.Replace = append(x.plan.Replace, i)
		return err == nil
	case "backend-config":
		x.Backend = append(x.Backend, value)
	case "lock":
		x.Lock.Off = value == "false"
	case "lock-timeout":
		d, err := time.ParseDuration(value)
		x.Lock.Timeout = d
		return err == nil
	case "parallelism":
		n, err := strconv.Atoi(value)
		x.Calls = n
		return err == nil && n > 0
	case "refresh":
		x.plan.SkipRefresh, x.plan.MinimalRefresh = value == "false", value == "config"
	case "minimal-refresh":
		x.plan.MinimalRefresh = value != "false"
	case "minimal-data":
		x.plan.MinimalData = value != "false"
	case "refresh-max-age":
		d, err := time.ParseDuration(value)
		x.plan.RefreshMaxAge = d
		return err == nil && d >= 0
	default:
		return false
	}
	return true
}

// Plan returns the options o of a run, extended by those that the blocks add.
func (x *Extra) Plan(o plan.Options) plan.Options {
	o.SkipRefresh = o.SkipRefresh || x.plan.SkipRefresh
	o.MinimalRefresh = o.MinimalRefresh || x.plan.MinimalRefresh
	o.MinimalData = o.MinimalData || x.plan.MinimalData
	o.RefreshMaxAge = cmp.Or(o.RefreshMaxAge, x.plan.RefreshMaxAge)
	o.Targets = slices.Concat(o.Targets, x.plan.Targets)
	o.Excludes = slices.Concat(o.Excludes, x.plan.Excludes)
	o.Replace = slices.Concat(o.Replace, x.plan.Replace)
	return o
}
