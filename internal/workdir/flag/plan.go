package flag

import "github.com/terrace-iac/terrace/plan"

// Modes returns the switches that select the mode of a plan. If both are given, the mode contains
// both bits, which the command must report as an error.
func Modes(o *plan.Options) Flags {
	return Flags{
		mode(o, plan.Destroy, "destroy", "Select the \"destroy\" planning mode: a plan to destroy all objects that this configuration manages."),
		mode(o, plan.RefreshOnly, "refresh-only", "Select the \"refresh only\" planning mode: check whether remote objects still match the most recent apply, without undoing anything."),
	}
}

// mode returns the switch that selects a mode.
func mode(o *plan.Options, m plan.Mode, name, help string) Flag {
	on := false
	return Bool(&on, name, help).Then(func(Setting) {
		if o.Mode &^= m; on {
			o.Mode |= m
		}
	})
}

// Refresh returns -refresh and, with less, the flags with which a plan reads fewer objects.
func Refresh(o *plan.Options, less bool) Flags {
	refresh := Off(&o.SkipRefresh, "refresh", "Skip checking for external changes to remote objects while creating the plan.")
	if !less {
		return Flags{refresh}
	}
	return Flags{
		refresh.Also("config", &o.MinimalRefresh),
		Bool(&o.MinimalRefresh, "minimal-refresh", "Check for external changes only of those objects that the plan changes, going by configuration and state; -refresh=config is the same. What differs outside of the others is not found."),
		Bool(&o.MinimalData, "minimal-data", "Read a data source only where its arguments are new or something that it depends on changes."),
		Duration(&o.RefreshMaxAge, "refresh-max-age", "duration", "Do not read again what a command here has read so lately, such as 10m, if the plan does not change it."),
	}
}

// Parallelism returns -parallelism, which limits the concurrent calls of providers.
func Parallelism(into *int) Flag {
	return Int(into, "parallelism", "n", "How many operations run at the same time. Defaults to 10.")
}

// A Scope limits a plan to a part of the configuration.
type Scope struct {
	Targets, Excludes, TargetFiles, ExcludeFiles, Replace []string
}

// Flags returns the flags.
func (o *Scope) Flags() Flags {
	return Flags{
		List(&o.Replace, "replace", "resource", "Force replacement of a resource instance, or of all existing instances that match a pattern such as aws_instance.web[*]. May be repeated.").Completes(Instances),
		List(&o.Targets, "target", "resource", "Limit the plan to the given module, resource, or resource instance and what it depends on, or to everything that matches a pattern such as aws_instance.* or module.app[*]. May be repeated. Cannot be used together with -exclude.").Completes(Addresses),
		List(&o.TargetFiles, "target-file", "path", "Like -target, for each address in a file: one a line, lines that begin with # are comments.").Completes(Files),
		List(&o.Excludes, "exclude", "resource", "Leave the given module, resource, or resource instance and what depends on it out of the plan, or everything that matches a pattern. May be repeated.").Completes(Addresses),
		List(&o.ExcludeFiles, "exclude-file", "path", "Like -exclude, for each address in a file.").Completes(Files),
	}
}
