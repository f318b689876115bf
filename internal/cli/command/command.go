// Package command is the declaration of commands: each command says once what it
// is called, what it is for, which flags and arguments it takes and what runs. The
// parser, the help, completion, man pages and docs/commands.md are made of it.
//
// Main types: Command, the declaration; Flag, one flag of it, bound to the variable
// that it sets; Call, one run of a command, with what every command may use. The
// one rule: nothing about the command line is written twice.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// A Command declares one command. Texts are flush left and broken into lines of at
// most 77 columns; the help indents them.
type Command struct {
	Name     string   // one word, or several as in "workspace new"
	Aliases  []string // other names of it, which no list shows
	Synopsis string   // a line for lists of commands
	Usage    string   // what stands behind the name, as in "[options] [PLAN]"
	Help     string   // paragraphs
	After    string   // what the help says behind the options
	Examples []Example
	Args     []Arg
	Exits    []Exit // nil for 0 success and 1 failure; see Statuses
	Main     bool   // listed first
	Hidden   bool   // not listed
	Uses     Uses   // what it works with
	Units    Units  // how it goes with units
	Mixed    bool   // flags may stand behind arguments
	Hint     string // what an error about an unknown flag adds

	// Prepare makes the flags, bound to new variables, and what runs when they are
	// set. It is called whenever the flags are asked for, so it must do nothing else.
	Prepare func() (Flags, Run)
}

// Run runs a command and returns the exit status.
type Run func(ctx context.Context, c *Call) int

// An Example is a line to type, without the program's name, and what it does.
type Example struct{ Line, Text string }

// An Arg is an argument of a command.
type Arg struct {
	Name     string // as in the usage
	Help     string
	Optional bool
	Repeated bool
	Choices  []string // the values that there are; nil for any
	Complete Completion
}

// An Exit is a status that a command ends with; a negative Code stands for any other.
type Exit struct {
	Code int
	Help string
}

// Shown is the status as documents write it.
func (x Exit) Shown() string {
	if x.Code < 0 {
		return "N"
	}
	return strconv.Itoa(x.Code)
}

// Units says how a command goes with units.
type Units uint

const (
	// InUnit commands run in the working folder of a unit, where one is.
	InUnit Units = 1 << iota
	// Uninitialized commands run in a unit's folder though it is not initialized.
	Uninitialized
	// NeedsInputs commands compute with the inputs of a unit.
	NeedsInputs
	// OverEstate commands run over many units at once, others one unit after the other.
	OverEstate
	// OnlyReads commands change nothing that units manage.
	OnlyReads
	// Examines commands look at a unit's module without its working folder where no program
	// may run.
	Examines
	// OneUnit commands are about one state or one person at a terminal: they make no
	// sense over many units.
	OneUnit
	// TakesUnitFlags commands take the flags of units though they run in no unit: they
	// are about units themselves.
	TakesUnitFlags
	// EachFolder commands run, over many units, in the folder of each as it is, and know
	// nothing of units.
	EachFolder
)

// Has reports whether all of some properties hold.
func (u Units) Has(all Units) bool { return u&all == all }

// A Call is one run of a command: where it runs, what it was given, and whom it reports to.
type Call struct {
	*workdir.Directory // where it works
	System             *sys.System
	Stdout             io.Writer // what other programs read

	Table   *Table
	Command *Command
	Args    []string // the arguments, without flags

	Report     *report.Reporter
	Prompt     *prompt.Prompter
	Interrupts *interrupt.Handler
	Origins    Origins         // nil outside of units
	Serving    *remote.Session // the turns that the command is asked for; nil: it runs for the user
	// Enter runs something in another folder as this command runs there: as in a unit, if
	// it is one's.
	Enter func(ctx context.Context, c *Call, dir string, do Run) int

	given map[string]bool
}

// Origins says where the values and the files of a unit come from.
type Origins interface {
	// Origin says where the values come from.
	Origin() explanation.Unit
	// Source names a file of the unit's directory for readers, with its layer.
	Source(file string) (path, layer string)
}

// Given reports whether a flag stood on the command line.
func (c *Call) Given(flag string) bool { return c.given[flag] }

// CalledAs is the tool that the program behaves as: "tofu", "terraform" or "terragrunt", or
// "" for none of them. TERRACE_AS names the tool; without it, the link that the program was
// started through does.
func (c *Call) CalledAs() string {
	if as := c.Env.Get("TERRACE_AS"); as != "" || len(c.System.Args) == 0 {
		return tool(as)
	}
	return tool(filepath.Base(c.System.Args[0]))
}

// tool returns the tool that a file name stands for, or "" if it is no tool's name. The name
// may end with a version or a platform, as "tofu1.12.6" (Atlantis) and
// "terragrunt_linux_amd64" (release files) do. "terraformer" is another program.
func tool(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	for _, t := range []string{"tofu", "terraform", "terragrunt"} {
		suffix, ok := strings.CutPrefix(name, t)
		if ok && (suffix == "" || !unicode.IsLetter(rune(suffix[0])) || suffix[0] == 'v' && len(suffix) > 1 && unicode.IsDigit(rune(suffix[1]))) {
			return t
		}
	}
	return ""
}

// Arg is an argument, "" if there are not so many.
func (c *Call) Arg(i int) string {
	if i >= len(c.Args) {
		return ""
	}
	return c.Args[i]
}

// UsageError reports a mistake on the command line.
func (c *Call) UsageError(summary, detail string) int {
	return c.Report.UsageError(c.Command.Name, summary, detail)
}

// Fail reports messages and returns the status of a failure.
func (c *Call) Fail(ds diag.List) int { return c.Report.Fail(ds) }

// WorkIn goes to another folder, which may be relative to the present one.
func (c *Call) WorkIn(dir string) {
	c.Dir = c.Path(dir)
	c.Report.Dir = c.Dir
}

// Do runs another command in place of this one, with the words behind its name.
func (c *Call) Do(ctx context.Context, cmd *Command, words []string) int {
	c.Command = cmd
	flags, run := cmd.Prepare()
	if !c.Parse(flags, words) {
		return 1
	}
	return run(ctx, c)
}

// Parse sets flags by the words behind the command's name, and keeps the arguments. ok
// is false after a mistake, which is reported.
func (c *Call) Parse(flags Flags, words []string) (ok bool) {
	var err error
	if c.Args, c.given, err = flags.Parse(words, c.Env, c.Command.Mixed); err == nil {
		return true
	}
	text := err.Error()
	if unknown := (unknownFlag{}); errors.As(err, &unknown) && c.Command.Hint != "" {
		text = "flag provided but not defined: " + unknown.word + ". " + c.Command.Hint
	}
	c.UsageError("Failed to parse command-line flags", text)
	return false
}

// Who is user@host, for locks.
func (c *Call) Who() string { return c.System.User() + "@" + c.System.Host() }

// OpenBackends makes the backends of a process.
func (c *Call) OpenBackends() *backend.Set { return c.NewBackends(c.Who()) }

// Below is a call in another directory that says nothing and that no interrupt reaches; what
// is verified once is shared.
func (c *Call) Below(dir string) *Call {
	return c.Inside(c.In(c.Path(dir), c.Env, nil))
}

// Inside is Below for a directory that somebody has made.
func (c *Call) Inside(d *workdir.Directory) *Call {
	r := report.New(c.Report.Context, c.System)
	r.Options, r.Reported, r.Redactor = c.Report.Options, c.Report.Reported, c.Report.Redactor
	r.Dir, r.Out = d.Dir, c.Stdout
	n := &Call{
		System: c.System, Stdout: c.Stdout, Table: c.Table, Command: c.Command, Report: r, Prompt: prompt.New(r),
		Interrupts: c.Interrupts.Inner(), Enter: c.Enter, Serving: c.Serving,
	}
	n.Enters(d)
	return n
}

// Enters makes a directory that somebody has made the one where the call works: what happens
// there is reported by this call.
func (c *Call) Enters(d *workdir.Directory) {
	d.Host, d.Set = host{c}, c.Report.Set
	c.Directory = d
}

// New is a call of a command in a system, with a reporter that has no views yet.
func New(ctx context.Context, system *sys.System, t *Table, h *interrupt.Handler) *Call {
	r := report.New(ctx, system)
	c := &Call{
		Directory: &workdir.Directory{
			Dir: system.Dir, Launch: system.Dir, Env: system.Env, User: journal.UserOf(system.Env), Set: r.Set,
			Now: system.Now, Sleep: system.Sleep, Stderr: system.Stderr, Run: system.Run, Executable: system.Executable,
			Hashes: &install.Hashes{}, Files: &readfile.Kept{},
		},
		System: system, Stdout: system.Stdout, Table: t, Report: r, Prompt: prompt.New(r), Interrupts: h, Command: &Command{},
	}
	c.Host = host{c}
	return c
}

// Group answers the first word of commands of two: the table says which there are.
func Group() (Flags, Run) {
	return nil, func(_ context.Context, c *Call) int {
		if len(c.Args) > 0 {
			return c.NoSuchCommand()
		}
		return c.UsageError("No command given", c.Table.Below(c.Command.Name))
	}
}

// NoSuchCommand answers a word behind the first one of commands of two that makes none with
// it.
func (c *Call) NoSuchCommand() int {
	given := c.Command.Name + " " + c.Args[0]
	return c.UsageError("No such command", fmt.Sprintf("There is no command %q.%s %s", given, c.Table.Suggest(given), c.Table.Below(c.Command.Name)))
}
