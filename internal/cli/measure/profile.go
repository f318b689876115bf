package measure

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Leading returns the flags of Terragrunt that mean the same for every command, and may
// precede its name.
func Leading() flag.Flags {
	off := false
	out := flag.Flags{flag.Ignored("no-color", "", "").WithTwoDashes(), flags.NoExec(&off)}
	for _, f := range (&unitflags.Flags{}).Declare() {
		if slices.Contains(strings.Fields(unitflags.Everywhere), f.Name) || f.Name == unitflags.EveryExperiment || strings.HasPrefix(f.Name, "no-tip") {
			out = append(out, f)
		}
	}
	return out
}

// # Profiles of the program
//
// The files are the same as those of Terragrunt. The path of a single profile is relative to
// the directory in which the program was started. The directory for all profiles is relative
// to --working-dir. OpenTofu's variable for a CPU profile is supported too.

// profiles returns the files that the flags and variables of a command request.
func profiles(c *command.Call, args []string) sys.Profiles {
	var p sys.Profiles
	if !unitflags.PlainFolder(c) {
		f, _, err := unitflags.Take(args, c.Env)
		if err != nil {
			return p // the command reports the error if it has such flags
		}
		p = f.Profile
		for _, x := range []struct {
			into *string
			name string
		}{{&p.CPU, "terragrunt_cpu.prof"}, {&p.Memory, "terragrunt_mem.prof"}, {&p.Goroutines, "terragrunt_goroutine.prof"}} {
			switch {
			case *x.into != "":
				*x.into = c.Path(*x.into)
			case f.ProfileDir != "":
				*x.into = filepath.Join(sys.Join(c.Path(f.Working), f.ProfileDir), x.name)
			}
		}
	}
	if file := c.Env.Get("TOFU_CPU_PROFILE"); file != "" && p.CPU == "" {
		p.CPU = c.Path(file)
	}
	return p
}

// Profiled runs a command, and writes the requested profiles.
func Profiled(c *command.Call, args []string, run func() int) int {
	p := profiles(c, args)
	if p == (sys.Profiles{}) {
		return run()
	}
	err := errors.New("this program cannot profile itself here")
	var stop func() error
	if c.System.Profile != nil {
		stop, err = c.System.Profile(p)
	}
	if err != nil {
		return c.Fail(badProfile(err))
	}
	c.Interrupts.Traces(stop)
	code := run()
	if err := c.Interrupts.EndTraces(); err != nil {
		c.Report.Tell(badProfile(err))
		code = max(code, 1)
	}
	return code
}

func badProfile(err error) diag.List {
	return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write a profile", "%s.", err)
}
