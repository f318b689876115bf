package unitflags

import (
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// An unusedFlag is a flag of Terragrunt that has no effect here.
type unusedFlag struct {
	name  string
	takes bool   // it has a value
	why   string // reason why it has no effect; "" if Terrace always behaves as with the flag
}

// Reasons that several flags share.
const (
	ownEngine = "the engine is part of this program"
	noServer  = "the cache of providers is a directory, and no server runs"
	oneStore  = "packages of modules are always kept in one cache, by address and content"
	notInHere = "this program does not have what the experiment brings"
)

// idle returns all unused flags.
func idle() []unusedFlag {
	return []unusedFlag{
		{EveryExperiment, false, ""}, {"no-tips", false, ""}, {"no-tip", true, ""}, {"tf-path", true, ownEngine},
		{"no-cas", false, oneStore}, {"cas-clone-depth", true, "repositories are cloned no deeper than needed"},
		{"use-partial-parse-config-cache", false, ""}, {"version-manager-file-name", true, "no version manager is asked"},
		{"dependency-fetch-output-from-state", false, ""}, {"no-dependency-fetch-output-from-state", false, "outputs are always read from state"},
		{"provider-cache-hostname", true, noServer}, {"provider-cache-port", true, noServer},
		{"provider-cache-token", true, noServer}, {"provider-cache-registry-names", true, noServer},
		{"queue-exclude-external", false, ""}, {"queue-strict-include", false, ""}, {"disable-command-validation", false, ""},
		{"no-destroy-dependencies-check", false, ""},
		{"engine-cache-path", true, ownEngine}, {"engine-skip-check", false, ownEngine},
		{"engine-log-level", true, ownEngine}, {"experimental-engine", false, ownEngine}, {"no-engine", false, ""},
	}
}

// idleExperiments are the experiments that Terrace does not have. What the others bring is
// available without the flag.
const idleExperiments = "browse-tui iac-engine mutable-generate slow-task-reporting symlinks"

// unusedFlags returns the unused flags. They record that they were given.
func (f *Flags) unusedFlags() flag.Flags {
	var out flag.Flags
	for _, x := range idle() {
		value := ""
		if x.takes {
			value = "VALUE"
		}
		ignored := flag.Ignored(x.name, value, "").WithTwoDashes().Variables(VariablesOf(x.name)...)
		out = append(out, ignored.Then(func(s flag.Setting) { f.noteIdle(x, s) }))
	}
	return out
}

// noteIdle records an unused flag, unless it is a switch that is turned off.
func (f *Flags) noteIdle(x unusedFlag, s flag.Setting) {
	if !s.Variable {
		f.noteOld(x.name)
	}
	if on, err := strconv.ParseBool(s.Value); !x.takes && s.Has && err == nil && !on {
		return
	}
	f.AllExperiments = f.AllExperiments || x.name == EveryExperiment
	if x.why != "" {
		f.Idle = append(f.Idle, s.As+": "+x.why)
	}
}

// EveryExperiment is the name of the flag that turns all experiments on.
const EveryExperiment = "experiment-mode"

// Everywhere are the flags that every command uses in the same way.
const Everywhere = "experiment strict-control strict-mode working-dir non-interactive log-level log-format log-custom-format log-disable log-show-abs-paths no-deprecation-warnings profile-cpu profile-mem profile-goroutine profile-dir"

// Choosing are the flags that commands use which list units.
const Choosing = "all a graph graph-root discovery-boundary filter affected filter-affected filters-file no-filters-file queue-include-dir queue-exclude-dir queue-excludes-file " +
	"queue-include-external queue-include-units-reading units-that-include config feature download-dir source source-map no-stack-generate " +
	"auth-provider-cmd no-discovery-auth-provider-cmd iam-assume-role iam-assume-role-session-name iam-assume-role-web-identity-token iam-assume-role-duration"

// NoUse records the given flags that a command ignores: all except Everywhere and those named
// in but.
func (f *Flags) NoUse(command, but string) {
	for _, name := range f.Given {
		if why := "--" + name + ": " + command + " has no use for it"; !slices.Contains(strings.Fields(Everywhere+" "+but), name) && !slices.Contains(f.Idle, why) {
			f.Idle = append(f.Idle, why)
		}
	}
}

// WithoutEffect returns a warning about the given flags and variables that have no effect.
func (f *Flags) WithoutEffect() diag.List {
	all := slices.Clone(f.Idle)
	for _, name := range f.Experiments {
		if slices.Contains(strings.Fields(idleExperiments), name) {
			all = append(all, "--experiment "+name+": "+notInHere)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return diag.Warnf(diag.CodeCLIIdleFlags, nil, "Flags without effect", "These are taken, so that scripts go on working, and do nothing here:\n  - %s.", strings.Join(all, ".\n  - "))
}
