package flags

import (
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// A Request contains the values of the flags of a plan, an apply, or another command over many
// units. This package declares the flags that several commands share. Each command declares its
// other flags in its package.
type Request struct {
	State flag.State
	Json  JSON
	request.Operation
}

// Planning returns the flags that plan, apply, destroy and refresh share, in the order of the
// help. With always, the flags that reduce reading are left out, since the command must read
// everything.
func (o *Request) Planning(always bool) flag.Flags {
	o.Input, o.Parallelism = true, 10
	out := append(flag.Modes(&o.Plan), flag.Refresh(&o.Plan, !always)...)
	out = append(out, o.Scope.Flags()...)
	out = append(out, flag.Vars(&o.Vars)...)
	out = append(out, Warnings()...)
	out = append(out, flag.Bool(&o.Input, "input", "Do not ask for input. Missing variables are errors then."))
	out = append(out, o.State.Lock.Flags()...)
	out = append(out, flag.NoColor(),
		flag.Parallelism(&o.Parallelism),
		flag.Bool(&o.Reveal, "show-sensitive", "Show sensitive values."),
		o.State.PathFlag())
	return append(out, o.Json.Flags()...)
}

// Causes returns -show-causes, for commands whose plan can set new values.
func (o *Request) Causes() flag.Flag {
	return flag.Bool(&o.Plan.Causes, "show-causes", "Show in the text of the plan, above each changed argument, the file and line that set its new value.")
}

// An Over is the form of a command that processes many units in one run. The package of the
// command declares it, with the flags that the command has in one directory.
type Over struct {
	// Flags returns the flags, bound to a request.
	Flags func(*Request) flag.Flags
	// Settle sets the options that the name of the command implies, such as the mode of destroy.
	// It is called after the flags are parsed. It may be nil.
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
