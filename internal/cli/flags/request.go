package flags

import (
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// A Request contains what the user requests of a plan, an apply, or another command over many
// units. This package declares the flags that several commands share. Each command declares
// its own in its package.
type Request struct {
	State State
	Json  JSON
	Scope Scope

	Vars        []workdir.VarFlag
	Input       bool // prompts are allowed
	Parallelism int
	Plan        plan.Options // without what Scope contains; Mode has several bits if the flags contradict each other
	Reveal      bool         // show sensitive values
	Out         string       // path of the plan file; "" for none
	Detailed    bool         // use the exit status to report changes
	Approved    bool         // apply without approval

	NoTests       bool   // do not validate test files
	TestDirectory string // directory of the test files
}

// Planning returns the flags that plan, apply, destroy and refresh share, in the order of the
// help. With always, the flags that reduce reading are left out, since the command must read
// everything.
func (o *Request) Planning(always bool) command.Flags {
	o.Input, o.Parallelism = true, 10
	refresh := true
	out := command.Flags{
		mode(&o.Plan, plan.Destroy, "destroy", "Select the \"destroy\" planning mode: a plan to destroy all objects that this configuration manages."),
		mode(&o.Plan, plan.RefreshOnly, "refresh-only", "Select the \"refresh only\" planning mode: check whether remote objects still match the most recent apply, without undoing anything."),
		command.Bool(&refresh, "refresh", "Skip checking for external changes to remote objects while creating the plan.").
			Then(func(command.Setting) { o.Plan.SkipRefresh = !refresh }),
	}
	if !always {
		out[2] = out[2].Also("config", &o.Plan.MinimalRefresh)
		out = append(out, lessFlags(&o.Plan)...)
	}
	out = append(out, o.Scope.flags()...)
	out = append(out, Vars(&o.Vars)...)
	out = append(out, Warnings()...)
	out = append(out, command.Bool(&o.Input, "input", "Do not ask for input. Missing variables are errors then."))
	out = append(out, o.State.Lock.Flags()...)
	out = append(out, NoColor(),
		command.Int(&o.Parallelism, "parallelism", "n", "How many operations run at the same time. Defaults to 10."),
		command.Bool(&o.Reveal, "show-sensitive", "Show sensitive values."),
		o.State.PathFlag())
	return append(out, o.Json.Flags()...)
}

// mode returns the switch that selects a mode.
func mode(o *plan.Options, m plan.Mode, name, help string) command.Flag {
	on := false
	return command.Bool(&on, name, help).Then(func(command.Setting) {
		if o.Mode &^= m; on {
			o.Mode |= m
		}
	})
}

// A Scope limits a plan to a part of the configuration.
type Scope struct {
	Targets, Excludes, TargetFiles, ExcludeFiles, Replace []string
}

func (o *Scope) flags() command.Flags {
	return command.Flags{
		command.List(&o.Replace, "replace", "resource", "Force replacement of a resource instance. May be repeated.").Completes(command.Instances),
		command.List(&o.Targets, "target", "resource", "Limit the plan to the given module, resource, or resource instance and what it depends on. May be repeated. Cannot be used together with -exclude.").Completes(command.Addresses),
		command.List(&o.TargetFiles, "target-file", "path", "Like -target, for each address in a file: one a line, lines that begin with # are comments.").Completes(command.Files),
		command.List(&o.Excludes, "exclude", "resource", "Leave the given module, resource, or resource instance and what depends on it out of the plan. May be repeated.").Completes(command.Addresses),
		command.List(&o.ExcludeFiles, "exclude-file", "path", "Like -exclude, for each address in a file.").Completes(command.Files),
	}
}

// lessFlags returns the flags with which a plan reads fewer objects.
func lessFlags(o *plan.Options) command.Flags {
	return command.Flags{
		command.Bool(&o.MinimalRefresh, "minimal-refresh", "Check for external changes only of those objects that the plan changes, going by configuration and state; -refresh=config is the same. What differs outside of the others is not found."),
		command.Bool(&o.MinimalData, "minimal-data", "Read a data source only where its arguments are new or something that it depends on changes."),
		command.Duration(&o.RefreshMaxAge, "refresh-max-age", "duration", "Do not read again what a command here has read so lately, such as 10m, if the plan does not change it."),
	}
}

// An Over is the form of a command that processes many units in one run. The package of the
// command declares it, with the flags that the command has in one directory.
type Over struct {
	// Flags returns the flags, bound to a request.
	Flags func(*Request) command.Flags
	// Settle sets what the name of the command implies, after the flags are parsed. It may be
	// nil.
	Settle func(*Request)
	// Refused maps the flags that are not allowed over many units to the reason: the end of a
	// sentence that begins with the flag, such as "names one file".
	Refused map[string]string
	// Together lists the flags with which the command processes all units in one run. With
	// other flags, or with arguments if Alone is set, it runs once for each unit. nil allows
	// all flags.
	Together []string
	Alone    bool
}

// OneFile is the reason to refuse a flag that names a file.
const OneFile = "names one file"
