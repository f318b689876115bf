// Package flags declares the flags that several commands share, with their help: those of JSON
// output, of the state and its lock, and of variables.
//
// Main types: JSON, Lock, State. The one rule: a flag with the same meaning in two commands is
// declared here.
package flags

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// JSON contains the values of -json and -json-into.
type JSON struct {
	On   bool
	Into string
}

// Flags returns the flags of commands that write events.
func (j *JSON) Flags() command.Flags {
	return command.Flags{
		command.Bool(&j.On, "json", "Produce output in a machine-readable JSON format."),
		command.Text(&j.Into, "json-into", "path", "Write the machine-readable output to a file, besides the output for people.").Completes(command.Files),
	}
}

// Use turns on the stream that the flags request. If that fails, it reports an error and
// returns false. The caller must call the reporter's Finish at the end.
func (j *JSON) Use(r *report.Reporter) (ok bool) { return r.UseJSON(j.On, j.Into) }

// Lock contains the values of -lock and -lock-timeout.
type Lock struct {
	On      bool
	Timeout time.Duration
}

// Flags returns the flags. The default is to lock the state.
func (l *Lock) Flags() command.Flags {
	l.On = true
	return command.Flags{
		command.Bool(&l.On, "lock", "Do not hold a state lock. This is dangerous if others might run commands on the same workspace at the same time."),
		command.Duration(&l.Timeout, "lock-timeout", "0s", "How long to retry a state lock."),
	}
}

// State selects a state and its lock.
type State struct {
	Lock
	workdir.StateFiles
	Journal string // where an apply keeps its journal: "file" or "store"; "" means the default
}

// PathFlag returns -state.
func (s *State) PathFlag() command.Flag {
	return command.Text(&s.Path, "state", "path", "A legacy option of the local backend: the state file.").Completes(command.Files)
}

// JournalFlag returns -journal.
func (s *State) JournalFlag() command.Flag {
	return command.Text(&s.Journal, "journal", "file", "Where the journal of the run is kept: \"file\" on this machine (the default, unless the CLI configuration has another), or \"store\" beside the state too, so that a run on another machine can go on where this one was cut off.").
		Among("file", "store").Variables("TERRACE_JOURNAL")
}

// VersionFlag returns -ignore-remote-version.
func (s *State) VersionFlag() command.Flag {
	return command.Bool(&s.IgnoreVersion, "ignore-remote-version", "Continue even if a remote workspace uses another version of the language.")
}

// WriteFlags returns -backup and -state-out.
func (s *State) WriteFlags() command.Flags {
	return command.Flags{
		command.Text(&s.Backup, "backup", "path", "Where to back up the existing state file before it changes. Defaults to the state file with \".backup\"; \"-\" for no backup.").Completes(command.Files),
		command.Text(&s.Out, "state-out", "path", "Write the state to this file, not to the one that -state names.").Completes(command.Files),
	}
}

// Vars returns -var and -var-file. Both append to list, since their order matters.
func Vars(list *[]workdir.VarFlag) command.Flags {
	take := func(file bool) func(string) error {
		return func(value string) error {
			*list = append(*list, workdir.VarFlag{File: file, Value: value})
			return nil
		}
	}
	return command.Flags{
		command.Func(take(false), "var", "'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		command.Func(take(true), "var-file", "path", "Load variable values from a file, besides terraform.tfvars and *.auto.tfvars. May be repeated.").Completes(command.VarFiles),
	}
}

// NoColor returns -no-color for the help of a command. Every command accepts it; see View.
func NoColor() command.Flag {
	return command.Ignored("no-color", "", "No color in the output.")
}

// TestDirectory returns -test-directory.
func TestDirectory(into *string) command.Flag {
	*into = "tests"
	return command.Text(into, "test-directory", "path", "The directory of test files, \"tests\" by default.").Completes(command.Folders)
}

// View returns the flags that every command accepts, before and after arguments.
func View(o *report.Options) command.Flags {
	return command.Flags{
		command.Bool(&o.NoColor, "no-color", "No color in the output.").InAnyPlace(),
		command.Bool(&o.CompactWarnings, "compact-warnings", "Show warnings that are not accompanied by errors in a compact form.").InAnyPlace(),
		command.Bool(&o.ConsolidateWarnings, "consolidate-warnings", "Show every warning, also where several are alike.").InAnyPlace(),
		command.Bool(&o.ConsolidateErrors, "consolidate-errors", "Show of several errors that are alike only the first.").InAnyPlace(),
		command.Bool(&o.Concise, "concise", "Leave out the lines about progress.").InAnyPlace(),
		command.Text(&o.Deprecation, "deprecation", "module:all", "Which warnings there are about what the authors of modules call deprecated: module:all, module:local or module:none.").
			InAnyPlace().Among("module:all", "module:local", "module:none"),
	}
}

// NoExec returns --no-exec, which every command accepts.
func NoExec(into *bool) command.Flag {
	return command.Bool(into, "no-exec", "Run no program and no provider: what needs one fails, and the place that asks for it is named. For configuration that nobody trusts.").
		Variables("TG_NO_EXEC").InAnyPlace()
}

// Warnings returns the flags of View that concern warnings, for the help of a command.
func Warnings() command.Flags {
	all := View(&report.Options{ConsolidateWarnings: true})
	for i := range all {
		all[i].Anywhere = false // View has already read them when the command parses its flags
	}
	return all[1:5]
}

// Document prints a document, or writes it to the file of -json-into. write writes the
// document. Document returns the exit status.
func (j *JSON) Document(c *command.Call, write func(io.Writer) error) int {
	line := func(w io.Writer) error {
		b := bufio.NewWriter(w)
		err := write(b)
		if err == nil {
			err = errors.Join(b.WriteByte('\n'), b.Flush())
		}
		return err
	}
	if j.On {
		if err := line(c.Stdout); err != nil {
			return c.Fail(NotWritten(err))
		}
		return 0
	}
	f, err := os.OpenFile(c.Path(j.Into), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(line(f), f.Close())
	}
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid argument", "The file of -json-into cannot be written: %s.", err))
	}
	return 0
}

// NotWritten returns the error for a document that could not be written. It returns nil for an
// error of standard output, which the program reports when the command ends.
func NotWritten(err error) diag.List {
	if _, ok := errors.AsType[*sys.OutputError](err); ok {
		return nil
	}
	return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "The document cannot be written: %s.", err)
}
