package estate

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/sys"
)

// extra is what extra_arguments blocks add to a command, taken apart for a run in
// this process.
type extra struct {
	vars  []VarFlag
	env   []string // a later one replaces an earlier one
	words []string // the arguments as they are written, without variable files
	bad   []string // what a run over several units cannot do
	lock  *LockOptions
	calls int // -parallelism
	fresh *bool
}

// extra reads the blocks that are about a command, in their order.
func (u *Unit) extra(command string) extra {
	var x extra
	if u.place == nil || u.place.terraform == nil {
		return x
	}
	abs := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		for _, p := range u.place.files.where(name) { // where the folder would have it from
			if _, err := os.Stat(p); err == nil {
				return p
			}
		}
		return filepath.Join(u.place.dir, name)
	}
	for _, block := range u.place.terraform.ExtraArguments {
		if !slices.Contains(block.Commands, command) {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(block.EnvVars)) {
			x.env = append(x.env, k+"="+block.EnvVars[k])
		}
		x.read(block.Arguments, abs)
		for _, name := range block.RequiredVarFiles {
			x.vars = append(x.vars, VarFlag{true, abs(name)})
		}
		for _, name := range block.OptionalVarFiles {
			if _, err := os.Stat(abs(name)); err == nil {
				x.vars = append(x.vars, VarFlag{true, abs(name)})
			}
		}
	}
	return x
}

// read takes the arguments of a block apart.
func (x *extra) read(args []string, abs func(string) string) {
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if takes := name == "var" || name == "var-file" || name == "lock-timeout" || name == "parallelism"; takes && !has && i+1 < len(args) {
			i++
			value = args[i]
		}
		if name == "var-file" {
			x.vars = append(x.vars, VarFlag{true, abs(value)})
			continue
		}
		x.words = append(x.words, args[i])
		if has || name != "var" && name != "lock-timeout" && name != "parallelism" {
			// the word holds its value
		} else {
			x.words[len(x.words)-1] = "-" + name + "=" + value
		}
		if !x.means(name, value) {
			x.bad = append(x.bad, args[i])
		}
	}
}

// means notes what an argument wants; false if a run over several units cannot do it.
func (x *extra) means(name, value string) bool {
	if x.lock == nil && (name == "lock" || name == "lock-timeout") {
		x.lock = &LockOptions{}
	}
	switch name {
	case "var":
		x.vars = append(x.vars, VarFlag{false, value})
	case "input", "no-color", "compact-warnings", "concise", "auto-approve":
	case "lock":
		x.lock.Off = value == "false"
	case "lock-timeout":
		d, err := time.ParseDuration(value)
		x.lock.Timeout = d
		return err == nil
	case "parallelism":
		n, err := strconv.Atoi(value)
		x.calls = n
		return err == nil && n > 0
	case "refresh":
		fresh := value != "false"
		x.fresh = &fresh
	default:
		return false
	}
	return true
}

// environ is the environment of a unit.
func (e *Estate) environ(u *Unit) sys.Env {
	env := append(slices.Clone(u.signed), u.extra(e.o.Request.Command).env...)
	if len(env) == 0 {
		return e.o.Machine.Environ
	}
	return e.o.Machine.Environ.With(env...)
}

// unfit are errors about extra arguments that a run over several units has not.
func (e *Estate) unfit(u *Unit) diag.List {
	x := u.extra(e.o.Request.Command)
	if len(x.bad) == 0 {
		return nil
	}
	var at = u.place.terraform.At
	ds := diag.Errorf(at, "Extra argument not available", "The unit gives the command the arguments %s, which a run over several units does not have in this version. Run the command in the unit's own folder.", strings.Join(x.bad, " "))
	ds[0].Code = "estate/extra-argument"
	return ds
}
