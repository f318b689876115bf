// Package command declares commands: the name, the help, the flags (package flag), the arguments
// and the function to run. The help, completion, the man pages and docs/commands.md are generated
// from the declarations.
//
// Main types: Command, a declaration; Call, one run of a command. The one rule: every fact about
// the command line is written once.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// A Command is the declaration of a command. Its texts are flush left and broken into lines of
// at most 77 columns; the help indents them.
type Command struct {
	Name     string   // one word, or several as in "workspace new"
	Aliases  []string // other names, which no list shows
	Synopsis string   // one line, for lists of commands
	Usage    string   // the usage after the name, as in "[options] [PLAN]"
	Help     string   // one or more paragraphs
	After    string   // text that the help prints after the options
	Examples []Example
	Args     []Arg
	Exits    []Exit // nil means 0 for success and 1 for failure; see Statuses
	Main     bool   // listed among the main commands
	Hidden   bool   // left out of lists
	Brief    bool   // the help omits the flags and refers to another command
	Uses     Uses   // resources that the command uses
	Units    Units  // behavior of the command in units
	Mixed    bool   // flags may follow arguments
	Hint     string // text added to the error about an unknown flag

	// Prepare returns the flags, bound to new variables, and the function to run once they are
	// set. The help and completion call Prepare too, so it must have no other effect.
	Prepare func() (flag.Flags, Run)
}

// Run runs a command and returns the exit status.
type Run func(ctx context.Context, c *Call) int

// An Example is a command line, without the program's name, and a text that explains it.
type Example struct{ Line, Text string }

// An Arg is an argument of a command.
type Arg struct {
	Name     string // the name in the usage
	Help     string
	Optional bool
	Repeated bool
	Choices  []string // the allowed values; nil allows any
	Complete flag.Completion
}

// An Exit is an exit status of a command. A negative Code means any other status.
type Exit struct {
	Code int
	Help string
}

// Shown returns the status as documents write it: a number, or "N" for any other status.
func (x Exit) Shown() string {
	if x.Code < 0 {
		return "N"
	}
	return strconv.Itoa(x.Code)
}

// Units is a set of properties: how a command behaves in a unit, and over many units.
type Units uint

const (
	// InUnit commands run in the working directory of a unit, if the current directory has a
	// unit.
	InUnit Units = 1 << iota
	// Uninitialized commands run in a unit's directory even if it is not initialized.
	Uninitialized
	// NeedsInputs commands evaluate the inputs of a unit.
	NeedsInputs
	// OverEstate commands process many units in one run. The others run once for each unit.
	OverEstate
	// OnlyReads commands change nothing that units manage.
	OnlyReads
	// Examines commands read a unit's module without its working directory if programs are
	// forbidden.
	Examines
	// OneUnit commands concern a single state or an interactive user, so they cannot run over
	// many units.
	OneUnit
	// TakesUnitFlags commands accept the flags of units although they do not run inside a
	// unit: their subject is units themselves.
	TakesUnitFlags
	// EachFolder commands, over many units, run in the directory of each unit and ignore its
	// unit file.
	EachFolder
)

// Has reports whether u has all properties in all.
func (u Units) Has(all Units) bool { return u&all == all }

// A Call is one run of a command: the directory, the arguments and the reporter.
type Call struct {
	*workdir.Directory // the working directory
	System             *sys.System
	Stdout             io.Writer // output for other programs

	Table   *Table
	Command *Command
	Args    []string // the arguments, without flags

	Report     *report.Reporter
	Prompt     *prompt.Prompter
	Interrupts *interrupt.Handler
	Serving    *remote.Session // the session that requests this command's work; nil means that the command runs for the user
	// Enter runs do in the directory dir in the same way as this command runs: inside a unit,
	// if dir belongs to a unit.
	Enter func(ctx context.Context, c *Call, dir string, do Run) int

	// UnitDir is the directory of the unit in which the command runs. Dir, its working directory,
	// may be elsewhere. It is "" outside of units.
	UnitDir string

	given map[string]bool
	runID string // the ID in the locks of this run, and of the calls below
}

// Given reports whether the command line contains the flag.
func (c *Call) Given(flag string) bool { return c.given[flag] }

// ReportPath returns the path of a report that the command writes for the user. A relative name is
// relative to the unit's directory in a unit, and to the working directory otherwise.
func (c *Call) ReportPath(name string) string { return sys.Join(cmp.Or(c.UnitDir, c.Dir), name) }

// DirectoryName returns the name of the working directory in the headlines of reports: its path below
// the root of the repository. At the root and outside of repositories, it is the last element of the
// path. Directories of a repository have different names, so that their comments on a pull request
// are not mistaken for each other.
func (c *Call) DirectoryName() string {
	dir := c.ReportPath(".")
	if git := sys.Nearest(dir, ".git"); git != "" {
		if rel, err := filepath.Rel(filepath.Dir(git), dir); err == nil && rel != "." {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.Base(dir)
}

// WorkspaceName returns the name of the working directory in the headlines of plans: DirectoryName,
// followed by the workspace in parentheses unless that is "default" or "".
func (c *Call) WorkspaceName(workspace string) string {
	if workspace == "" || workspace == store.Default {
		return c.DirectoryName()
	}
	return c.DirectoryName() + " (" + workspace + ")"
}

// CalledAs returns the tool that the program emulates: "tofu", "terraform" or "terragrunt", or
// "" for none. The variable TERRACE_AS has precedence over the name that the program was
// started by.
func (c *Call) CalledAs() string {
	if as := c.Env.Get("TERRACE_AS"); as != "" || len(c.System.Args) == 0 {
		return tool(as)
	}
	return tool(filepath.Base(c.System.Args[0]))
}

// tool returns the tool that a file name refers to, or "" if there is none. The name may end
// with a version or a platform, as in "tofu1.12.6" (Atlantis) and "terragrunt_linux_amd64"
// (release files). "terraformer" is another program.
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

// Arg returns the argument with index i, or "" if there are fewer arguments.
func (c *Call) Arg(i int) string {
	if i >= len(c.Args) {
		return ""
	}
	return c.Args[i]
}

// UsageError reports an error in the command line and returns the exit status.
func (c *Call) UsageError(summary, detail string) int {
	for i, a := range c.Args {
		if i > 0 && len(a) > 1 && a[0] == '-' && !strings.HasPrefix(c.Args[0], "-") {
			name, _, _ := strings.Cut(a, "=") // the value may be a secret
			detail = strings.TrimSuffix(detail, ".") + fmt.Sprintf(". Flags go before the arguments: write %s in front of %q.", name, c.Args[0])
			break
		}
	}
	return c.Report.UsageError(c.Command.Name, summary, detail)
}

// Fail reports messages and returns the exit status of a failure.
func (c *Call) Fail(ds diag.List) int { return c.Report.Fail(ds) }

// WorkIn changes the working directory to dir, which may be relative to the current one.
func (c *Call) WorkIn(dir string) {
	c.Dir = c.Path(dir)
	c.Report.Dir = c.Dir
}

// Do runs another command in place of this one. words are the words after its name.
func (c *Call) Do(ctx context.Context, cmd *Command, words []string) int {
	c.Command = cmd
	flags, run := cmd.Prepare()
	if !c.Parse(flags, words) {
		return 1
	}
	c.ReadOnce()
	return run(ctx, c)
}

// Parse sets flags from the words after the command's name, and stores the arguments. If the
// words are invalid, it reports an error and returns false.
func (c *Call) Parse(flags flag.Flags, words []string) (ok bool) {
	var err error
	if c.Args, c.given, err = flags.Parse(words, c.Env, c.Command.Mixed); err == nil {
		return true
	}
	text := err.Error()
	if unknown := (flag.UnknownError{}); errors.As(err, &unknown) && c.Command.Hint != "" {
		text = "flag provided but not defined: " + unknown.Word
		if unknown.Near != "" {
			text += "; did you mean " + unknown.Near + "?"
		} else {
			text += "."
		}
		text += " " + c.Command.Hint
	}
	c.UsageError("Failed to parse command-line flags", text)
	return false
}

// Who returns user@host, the owner of locks.
func (c *Call) Who() string { return c.System.User() + "@" + c.System.Host() }

// Mark returns the mark of this run in its locks. Calls below have the same mark.
func (c *Call) Mark() store.RunMark { return store.RunMark{ID: c.runID, Process: c.System.Process} }

// OpenBackends returns a set of backends whose locks belong to Who.
func (c *Call) OpenBackends() *backend.Set { return c.NewBackends(c.Who()) }

// Below returns a call in another directory. It has no views, so it prints nothing, and
// interrupts do not reach it. Its Reported and Redactor are those of c.
func (c *Call) Below(dir string) *Call {
	return c.Inside(c.In(c.Path(dir), c.Env, nil))
}

// Inside is Below for a directory that the caller has made.
func (c *Call) Inside(d *workdir.Directory) *Call {
	r := report.New(c.Report.Context, c.System)
	r.Options, r.Reported, r.Redactor = c.Report.Options, c.Report.Reported, c.Report.Redactor
	r.Names, r.Dir, r.Out = c.Report.Names, d.Dir, c.Stdout
	n := &Call{
		System: c.System, Stdout: c.Stdout, Table: c.Table, Command: c.Command, Report: r, Prompt: prompt.New(r),
		Interrupts: c.Interrupts.Inner(), Enter: c.Enter, Serving: c.Serving, runID: c.runID,
	}
	n.Enters(d)
	return n
}

// Enters makes d the directory of the call. The call reports the events of d.
func (c *Call) Enters(d *workdir.Directory) {
	d.Host, d.Set = host{c}, c.Report.Set
	c.Directory = d
}

// New returns a call in a system. Its reporter has no views yet.
func New(ctx context.Context, system *sys.System, t *Table, h *interrupt.Handler) *Call {
	r := report.New(ctx, system)
	c := &Call{
		Directory: &workdir.Directory{
			Dir: system.Dir, Launch: system.Dir, Env: system.Env, User: journal.UserOf(system.Env), Set: r.Set,
			Now: system.Now, Sleep: system.Sleep, Stderr: system.Stderr, Run: system.Run, Executable: system.Executable,
			Hashes: &install.Hashes{}, Files: &readfile.Kept{},
		},
		System: system, Stdout: system.Stdout, Table: t, Report: r, Prompt: prompt.New(r), Interrupts: h, Command: &Command{}, runID: store.NewID(),
	}
	c.Host, r.Names = host{c}, namesOf(c.CalledAs())
	c.RecordPackages(system.Host())
	return c
}

// namesOf returns the names in texts if the program emulates a tool; "" means none. Terragrunt
// runs OpenTofu, which its texts name, but its users call Terragrunt.
func namesOf(tool string) diag.Names {
	switch tool {
	case "tofu", "terragrunt":
		return diag.NamesOf("OpenTofu", tool)
	case "terraform":
		return diag.NamesOf("Terraform", tool)
	}
	return diag.Names{}
}

// Group is the Prepare function of the first word of commands with two words, such as "state".
// It reports which commands begin with that word.
func Group() (flag.Flags, Run) {
	return nil, func(_ context.Context, c *Call) int {
		if len(c.Args) > 0 {
			return c.NoSuchCommand()
		}
		return c.UsageError("No command given", c.Table.Below(c.Command.Name))
	}
}

// NoSuchCommand reports that the command's name and its first argument together name no
// command.
func (c *Call) NoSuchCommand() int {
	given := c.Command.Name + " " + c.Args[0]
	return c.UsageError("No such command", fmt.Sprintf("There is no command %q.%s %s", given, c.Table.Suggest(given), c.Table.Below(c.Command.Name)))
}
