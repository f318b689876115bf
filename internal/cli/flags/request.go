package flags

import (
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// A Request is what a user asks of a plan, an apply, or another command over many units. The
// flags of commands set it: those that several commands share are declared here, and each
// command declares its own beside itself.
type Request struct {
	State State
	Json  JSON
	Scope Scope

	Vars        []workdir.VarFlag
	Input       bool // questions may be asked
	Parallelism int
	Refresh     bool
	Destroy     bool
	RefreshOnly bool
	Plan        plan.Options // what the flags above and Scope do not set
	Reveal      bool         // sensitive values
	Out         string       // the file for the plan; "" for none
	Detailed    bool         // the status tells whether there are changes
	Approved    bool         // no question is asked before the apply

	NoTests       bool   // test files are not validated
	TestDirectory string // the directory of test files
}

// Planning declares the flags that plan, apply, destroy and refresh share, in the order of the
// help. With always, the command reads everything, so that there are no flags to read less.
func (o *Request) Planning(always bool) command.Flags {
	o.Input, o.Refresh, o.Parallelism = true, true, 10
	out := command.Flags{
		command.Bool(&o.Destroy, "destroy", "Select the \"destroy\" planning mode: a plan to destroy all objects that this configuration manages."),
		command.Bool(&o.RefreshOnly, "refresh-only", "Select the \"refresh only\" planning mode: check whether remote objects still match the most recent apply, without undoing anything."),
		command.Bool(&o.Refresh, "refresh", "Skip checking for external changes to remote objects while creating the plan."),
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

// A Scope is the part of the configuration that a plan is about.
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

// lessFlags are the flags with which a plan reads less.
func lessFlags(o *plan.Options) command.Flags {
	return command.Flags{
		command.Bool(&o.MinimalRefresh, "minimal-refresh", "Check for external changes only of those objects that the plan changes, going by configuration and state; -refresh=config is the same. What differs outside of the others is not found."),
		command.Bool(&o.MinimalData, "minimal-data", "Read a data source only where its arguments are new or something that it depends on changes."),
		command.Duration(&o.RefreshMaxAge, "refresh-max-age", "duration", "Do not read again what a command here has read so lately, such as 10m, if the plan does not change it."),
	}
}

// An Over is what a command does over many units at once. The command's package declares it,
// with the flags that the command has in one directory.
type Over struct {
	// Flags declares the flags, bound to a request.
	Flags func(*Request) command.Flags
	// Settle sets what the command's name says, after the flags were read; nil for nothing.
	Settle func(*Request)
	// Refused are the flags that cannot be given over many units, by name, with the reason:
	// a sentence that follows the flag, such as "names one file".
	Refused map[string]string
	// Together are the flags with which the command runs over many units at once; with others,
	// or with arguments where Alone is set, it runs in one unit after the other. nil means all.
	Together []string
	Alone    bool
}

// OneFile is the reason for which a flag that names a file cannot be given over many units.
const OneFile = "names one file"
