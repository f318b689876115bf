package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/sys"
)

// leading takes the flags of Terragrunt that mean the same to every command from in
// front of the command's name.
func (s *session) leading(args []string) (flags, rest []string) {
	if s.plainFolder() {
		return nil, args
	}
	takes := map[string]bool{"no-color": false} // whether each takes a value
	for _, x := range (&unitFlags{}).specs() {
		if slices.Contains(strings.Fields(everywhere), x.name) {
			takes[x.name] = x.on == nil
		}
	}
	for _, x := range idleFlags() {
		if x.name == everyExperiment || strings.HasPrefix(x.name, "no-tip") {
			takes[x.name] = x.takes
		}
	}
	for len(args) > 0 {
		name, ok := strings.CutPrefix(args[0], "--")
		name, _, has := strings.Cut(name, "=")
		value, known := takes[name]
		n := 1
		if value && !has {
			n = 2
		}
		if !ok || !known || len(args) < n {
			break
		}
		flags, args = append(flags, args[:n]...), args[n:]
	}
	return flags, args
}

// # Profiles of the program itself
//
// The files are those of Terragrunt: one that is named by itself counts from the folder
// that the program was started in, the folder for all of them from the one of
// --working-dir. OpenTofu's variable for a profile of the processor counts too.

// profiles are the files that the flags and variables of a command ask for.
func (s *session) profiles(args []string) sys.Profiles {
	var p sys.Profiles
	if !s.plainFolder() {
		f, _, err := takeUnitFlags(args, s.Env)
		if err != nil {
			return p // the command tells it, if it takes such flags
		}
		p = f.profile
		for _, x := range []struct {
			into *string
			name string
		}{{&p.CPU, "terragrunt_cpu.prof"}, {&p.Memory, "terragrunt_mem.prof"}, {&p.Goroutines, "terragrunt_goroutine.prof"}} {
			switch {
			case *x.into != "":
				*x.into = s.Path(*x.into)
			case f.profileDir != "":
				*x.into = filepath.Join(s.System.In(f.working).Path(f.profileDir), x.name)
			}
		}
	}
	if file := s.Env.Get("TOFU_CPU_PROFILE"); file != "" && p.CPU == "" {
		p.CPU = s.Path(file)
	}
	return p
}

// profiled runs a command, and writes the profiles that are asked for.
func (s *session) profiled(args []string, run func() int) int {
	p := s.profiles(args)
	if p == (sys.Profiles{}) {
		return run()
	}
	err := errors.New("this program cannot profile itself here")
	var stop func() error
	if s.Profile != nil {
		stop, err = s.Profile(p)
	}
	if err != nil {
		return s.fail(badProfile(err))
	}
	s.mu.Lock()
	s.reach.traced = stop
	s.mu.Unlock()
	code := run()
	if err := s.endProfiles(); err != nil {
		s.tell(badProfile(err))
		code = max(code, 1)
	}
	return code
}

// endProfiles writes the profiles, once.
func (s *session) endProfiles() error {
	s.mu.Lock()
	stop := s.reach.traced
	s.reach.traced = nil
	s.mu.Unlock()
	if stop == nil {
		return nil
	}
	return stop()
}

func badProfile(err error) diag.List {
	return diag.Errorf(nil, "Failed to write a profile", "%s.", err)
}
