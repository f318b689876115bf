package statecmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/state/stateedit"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state"
)

func mv() command.Command {
	return command.Command{
		Name: "state mv", Aliases: []string{"state move"}, Synopsis: "Move an item in the state", Usage: "[options] SOURCE DESTINATION",
		Uses:  command.State,
		Units: command.InUnit | command.OneUnit,
		Help: `Change the address of a module, a resource or an instance in the state, so that
the object is not destroyed and created again when its block is renamed or
moved.

With -to the object moves into the state of another directory or unit, with
-state-out into another state file. Either both states change or neither does:
if the program is killed in between, the next command on either of them
completes the move or undoes it.`,
		Args: []command.Arg{{Name: "SOURCE", Help: "The address to move.", Complete: flag.Instances}, {Name: "DESTINATION", Help: "Its new address.", Complete: flag.Addresses}},
		Examples: []command.Example{
			{Line: "state mv aws_instance.a 'aws_instance.b[0]'", Text: "Rename, and give it a key."},
			{Line: "state mv -to=../database aws_db_instance.main aws_db_instance.main", Text: "Move a resource into the state of another unit, or of another directory."},
			{Line: "state mv -from=app -to=network module.vpc module.vpc", Text: "The same from anywhere, for a module."},
			{Line: "state mv -state-out=../other/terraform.tfstate module.db module.db", Text: "Move a module into the state of another file."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			m := &move{common: &common{stamps: true}}
			fs := append(flag.Flags{flag.Bool(&m.dry, "dry-run", "Print the move, and change nothing.")}, m.writing()...)
			fs = append(fs,
				flag.Text(&m.fromDir, "from", "DIR", "The directory or unit whose state it leaves. The default is the one that the command runs in.").Completes(flag.Folders),
				flag.Text(&m.toDir, "to", "DIR", "The directory or unit whose state it goes into. The default is the one that the command runs in.").Completes(flag.Folders),
				flag.Text(&m.state.Out, "state-out", "path", "The state file to move to, for the local backend.").Completes(flag.Files),
				flag.Text(&m.backupOut, "backup-out", "path", "Where to back up the state file that is moved to.").Completes(flag.Files))
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) != 2 {
					return c.UsageError("Invalid number of arguments", "Exactly two arguments expected")
				}
				if !m.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				ts, ds := targets(c.Args)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				m.from, m.to = ts[0], ts[1]
				return m.run(ctx, c)
			}
		},
	}
}

type move struct {
	*common
	from, to       addr.Target
	fromDir, toDir string
	dry            bool
	backupOut      string
}

func (m *move) said(c *command.Call, where string) {
	verb := "Move"
	if m.dry {
		verb = "Would move"
	}
	c.Report.Say(fmt.Sprintf("%s %q to %q%s\n", verb, m.from.String(), m.to.String(), where))
	if !m.dry {
		c.Report.Human.Say("Successfully moved 1 object(s).\n")
		c.Report.Stream.Log("Successfully moved 1 object(s)")
	}
}

func (m *move) run(ctx context.Context, c *command.Call) int {
	out := m.state.Out
	m.state.Out = ""
	switch {
	case m.fromDir != "" || m.toDir != "":
		if m.state.Path != "" || out != "" {
			return c.UsageError("Incompatible options", "-from and -to name directories or units, -state and -state-out name files: use either these or those.")
		}
		return m.elsewhere(ctx, c)
	case out != "" && c.Path(out) != c.Path(m.state.Path):
		there := &common{vars: m.vars, stamps: true, state: flag.State{Lock: m.state.Lock, StateFiles: workdir.StateFiles{Path: out, Backup: m.backupOut}}}
		ds := m.across(ctx, end{m.common, c}, end{there, c})
		if !ds.HasErrors() {
			m.said(c, "")
		}
		return c.Report.Status(ds)
	}
	return m.edit(ctx, c, "state-mv", func(s *state.State) (*state.State, func(), diag.List) {
		if s == nil {
			return nil, nil, noState()
		}
		next, ds := stateedit.Move(s, m.from, m.to)
		if ds.HasErrors() {
			return nil, nil, ds
		}
		if m.dry {
			next = nil
		}
		return next, func() { m.said(c, "") }, nil
	})
}

// elsewhere moves objects between the states of two directories or units.
func (m *move) elsewhere(ctx context.Context, c *command.Call) int {
	done, begun := false, false
	var ds diag.List
	code := m.enter(ctx, c, m.fromDir, func(from *command.Call) int {
		return m.enter(ctx, c, m.toDir, func(to *command.Call) int {
			begun = true
			other := *m.common
			other.state.Backup = m.backupOut
			ds = m.across(ctx, end{m.common, from}, end{&other, to})
			done = !ds.HasErrors()
			return min(len(ds.Errors()), 1)
		})
	})
	if done {
		where := ""
		if m.toDir != "" {
			where = " of " + filepath.ToSlash(m.toDir)
		}
		m.said(c, where)
	}
	if begun {
		c.Report.Tell(ds)
	}
	return code
}

// enter calls do for another directory, which may be that of a unit. "" is the working
// directory.
func (m *move) enter(ctx context.Context, c *command.Call, dir string, do func(*command.Call) int) int {
	if dir == "" {
		return do(c)
	}
	path := dir
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.KeepDir(), dir)
	}
	if err := project.IsDir(path); err != nil {
		return c.Fail(diag.List{{Code: diag.CodeStateNoFolder, Severity: diag.Error, Summary: "No such directory", Detail: fmt.Sprintf("%s is neither a unit nor a directory with configuration: %s.", dir, err)}})
	}
	return c.Enter(ctx, c, path, func(_ context.Context, in *command.Call) int { return do(in) })
}

// An end is one of the two states, with a call in its directory.
type end struct {
	*common
	c *command.Call
}

func (e end) options(ctx context.Context) (statemgr.Options, diag.List) {
	at, _, ds := e.open(ctx, e.c)
	return e.locking(e.c, at, "state-mv"), ds
}

// across moves objects from one state to another. Either both states change or neither does.
func (m *move) across(ctx context.Context, from, into end) diag.List {
	a, ds := from.options(ctx)
	if ds.HasErrors() {
		return ds
	}
	b, more := into.options(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	x, y, more := statemgr.TakePair(ctx, a, b)
	if ds = append(ds, more...); x == nil {
		return ds
	}
	ds = append(ds, m.between(ctx, x, y)...)
	return append(append(ds, y.Release()...), x.Release()...)
}

func (m *move) between(ctx context.Context, from, into *statemgr.State) diag.List {
	if from.Current() == nil {
		return noState()
	}
	target := into.Current()
	if target == nil {
		target = state.New()
	}
	out, in, ds := stateedit.Transfer(from.Current(), target, m.from, m.to)
	if ds.HasErrors() || m.dry {
		return ds
	}
	return statemgr.Transfer(ctx, from, into, out, in)
}
