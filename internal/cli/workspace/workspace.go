// Package workspace implements the commands on workspaces.
//
// Main types: workspaceCmd, the differences between the commands; workspaceRun, the data that
// all of them need.
package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/similar"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// workspaceOptions contains the flags of the commands on workspaces.
type workspaceOptions struct {
	name     string
	vars     []workdir.VarFlag
	json     flags.JSON
	lock     flag.Lock
	state    string
	force    bool
	orCreate bool
}

// A workspaceCmd contains the properties in which the commands differ.
type workspaceCmd struct {
	name, synopsis, usage, help string
	units                       command.Units
	uses                        command.Uses
	named                       bool // the command takes the name of a workspace
	flags                       func(*workspaceOptions) flag.Flags
	run                         func(context.Context, *command.Call, *workspaceOptions) int
}

// Commands declares the commands of this package.
func Commands() []command.Command {
	plain := func(o *workspaceOptions) flag.Flags { return o.json.Flags().Hide() }
	out := []command.Command{{
		Name: "workspace", Synopsis: "Workspace management", Help: "new, list, show, select and delete Terrace workspaces.",
		Prepare: func() (flag.Flags, command.Run) {
			return nil, func(_ context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.NoSuchCommand()
				}
				fmt.Fprintln(c.Stderr, c.Table.HelpOf(c.Command))
				return 1
			}
		},
	}}
	for _, w := range []workspaceCmd{
		{"list", "List Workspaces", "[options]", "List workspaces.", command.OnlyReads, command.Backends, false, func(o *workspaceOptions) flag.Flags {
			json := o.json.Flags()
			json[1] = json[1].Hide()
			return json
		}, runWorkspaceList},
		{"new", "Create a new workspace", "[options] NAME", "Create a new Terrace workspace.", 0, command.State, true, func(o *workspaceOptions) flag.Flags {
			return append(append(o.lock.Flags(), flag.Text(&o.state, "state", "path", "Copy an existing state file into the new workspace.").Completes(flag.Files)), plain(o)...)
		}, runWorkspaceNew},
		{"select", "Select a workspace", "[options] NAME", "Select a different Terrace workspace.", 0, command.Backends, true, func(o *workspaceOptions) flag.Flags {
			return append(flag.Flags{flag.Bool(&o.orCreate, "or-create", "Create the workspace if it doesn't exist.")}, plain(o)...)
		}, runWorkspaceSelect},
		{"show", "Show the name of the current workspace", "", "Show the name of the current workspace.", command.OnlyReads | command.Uninitialized, 0, false, func(*workspaceOptions) flag.Flags { return nil }, runWorkspaceShow},
		{"delete", "Delete a workspace", "[options] NAME", "Delete a Terrace workspace.", 0, command.State, true, func(o *workspaceOptions) flag.Flags {
			fs := flag.Flags{flag.Bool(&o.force, "force", "Remove a workspace that still holds resources; these are then no longer managed.")}
			return append(append(fs, o.lock.Flags()...), plain(o)...)
		}, runWorkspaceDelete},
	} {
		out = append(out, w.command())
	}
	for _, cmd := range out { // former names of the commands
		if cmd.Name != "workspace show" {
			out = append(out, former(cmd))
		}
	}
	return out
}

// former returns the command under its name from the time when workspaces were called
// environments.
func former(cmd command.Command) command.Command {
	prepare := cmd.Prepare
	cmd.Name, cmd.Hidden = "env"+strings.TrimPrefix(cmd.Name, "workspace"), true
	cmd.Prepare = func() (flag.Flags, command.Run) {
		fs, run := prepare()
		return fs, func(ctx context.Context, c *command.Call) int {
			c.Report.WarnBeside(diag.Warnf(diag.CodeCLIEnv, nil, "The \""+view.Program+" env\" family of commands is deprecated", "What was called an environment is called a workspace now, since there are other things of that name. Use the \"%s workspace\" commands instead.", view.Program))
			return run(ctx, c)
		}
	}
	return cmd
}

func (w workspaceCmd) command() command.Command {
	cmd := command.Command{Name: "workspace " + w.name, Synopsis: w.synopsis, Usage: w.usage, Help: w.help, Uses: w.uses, Units: command.InUnit | w.units}
	want, detail := 0, "Expected no positional arguments."
	if w.named {
		want, detail = 1, "Expected a single argument: the name of a workspace."
		cmd.Args = []command.Arg{{Name: "NAME", Help: "The workspace.", Complete: flag.Workspaces}}
		if w.name == "new" {
			cmd.Args[0].Complete = flag.Nothing
		}
	}
	cmd.Prepare = func() (flag.Flags, command.Run) {
		o := &workspaceOptions{}
		return append(w.flags(o), flag.Vars(&o.vars)...), func(ctx context.Context, c *command.Call) int {
			if len(c.Args) != want {
				return c.UsageError("Unexpected argument", detail)
			}
			o.name = c.Arg(0)
			if !o.json.Use(c.Report) {
				return 1
			}
			defer c.Report.Finish()
			return w.run(ctx, c, o)
		}
	}
	return cmd
}

// A workspaceRun contains the data that the commands need.
type workspaceRun struct {
	*command.Call
	backend *workdir.OpenedBackend
	all     backend.Workspaces
	names   []string
	current string
}

// workspaces opens the workspaces of the working directory.
func workspaces(ctx context.Context, c *command.Call, given []workdir.VarFlag) (*workspaceRun, diag.List) {
	b, ds := c.WhereState(ctx, given)
	if ds.HasErrors() {
		return nil, ds
	}
	w := &workspaceRun{Call: c, backend: b, all: backend.Workspaces{Backend: b.Opened, Options: c.StoreOptions(ctx, b, workdir.StateFiles{})}}
	var more diag.List
	if w.current, more = c.Directory.Workspace(); more.HasErrors() {
		return nil, append(ds, more...)
	}
	w.names, more = w.all.List(ctx)
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	return w, ds
}

func (w *workspaceRun) has(name string) bool { return slices.Contains(w.names, name) }

// unknown returns the error for a workspace that does not exist.
func (w *workspaceRun) unknown(name string) diag.List {
	text := "You can create this workspace with the \"new\" subcommand or include the \"-or-create\" flag with the \"select\" subcommand."
	if near := similar.Nearest(name, slices.Values(w.names)); near != "" {
		text = fmt.Sprintf("Did you mean %q? ", near) + text
	}
	return diag.Errorf(diag.CodeStateWorkspace, nil, fmt.Sprintf("Workspace %q doesn't exist", name), "%s", text)
}

// overridden returns an error if TF_WORKSPACE selects the workspace, because the command could
// not change the selection.
func overridden(c *command.Call) diag.List {
	if c.Env.Get("TF_WORKSPACE") == "" {
		return nil
	}
	return diag.Errorf(diag.CodeStateWorkspace, nil, "The selected workspace is overridden using the TF_WORKSPACE environment variable", "To select a new workspace, either update this environment variable or unset it and then run this command again.")
}
