package flag

import (
	"time"

	"github.com/terrace-iac/terrace/internal/workdir"
)

// Lock contains the values of -lock and -lock-timeout.
type Lock struct {
	On      bool
	Timeout time.Duration
}

// Flags returns the flags. The default is to lock the state.
func (l *Lock) Flags() Flags {
	l.On = true
	return Flags{
		Bool(&l.On, "lock", "Do not hold a state lock. This is dangerous if others might run commands on the same workspace at the same time."),
		LockTimeout(&l.Timeout),
	}
}

// LockTimeout returns -lock-timeout.
func LockTimeout(into *time.Duration) Flag {
	return Duration(into, "lock-timeout", "0s", "How long to retry a state lock.")
}

// BackendConfig returns -backend-config, which appends to list.
func BackendConfig(list *[]string) Flag {
	return List(list, "backend-config", "path", "Configuration to be merged with what is in the backend block: a file with assignments or a 'key=value'. May be repeated.").Completes(Files)
}

// State selects a state and its lock.
type State struct {
	Lock
	workdir.StateFiles
	Journal string // where an apply keeps its journal: "file" or "store"; "" means the default
}

// PathFlag returns -state.
func (s *State) PathFlag() Flag {
	return Text(&s.Path, "state", "path", "A legacy option of the local backend: the state file.").Completes(Files)
}

// JournalFlag returns -journal.
func (s *State) JournalFlag() Flag {
	return Text(&s.Journal, "journal", "file", "Where the journal of the run is kept: \"file\" on this machine (the default, unless the CLI configuration has another), or \"store\" beside the state too, so that a run on another machine can go on where this one was cut off.").
		Among("file", "store").Variables("TERRACE_JOURNAL")
}

// VersionFlag returns -ignore-remote-version.
func (s *State) VersionFlag() Flag {
	return Bool(&s.IgnoreVersion, "ignore-remote-version", "Continue even if a remote workspace uses another version of the language.")
}

// WriteFlags returns -backup and -state-out.
func (s *State) WriteFlags() Flags {
	return Flags{
		Text(&s.Backup, "backup", "path", "Where to back up the existing state file before it changes. Defaults to the state file with \".backup\"; \"-\" for no backup.").Completes(Files),
		Text(&s.Out, "state-out", "path", "Write the state to this file, not to the one that -state names.").Completes(Files),
	}
}

// Vars returns -var and -var-file. Both append to list, since their order matters.
func Vars(list *[]workdir.VarFlag) Flags {
	take := func(file bool) func(string) error {
		return func(value string) error {
			*list = append(*list, workdir.VarFlag{File: file, Value: value})
			return nil
		}
	}
	return Flags{
		Func(take(false), "var", "'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		Func(take(true), "var-file", "path", "Load variable values from a file, besides terraform.tfvars and *.auto.tfvars. May be repeated.").Completes(VarFiles),
	}
}

// NoColor returns -no-color for the help of a command. Every command accepts it.
func NoColor() Flag {
	return Ignored("no-color", "", "No color in the output.")
}
