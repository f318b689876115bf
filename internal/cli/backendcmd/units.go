package backendcmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Commands declares the commands of this package.
func Commands() []command.Command {
	return []command.Command{
		{
			Name: "backend", Synopsis: "Check, make and move what keeps states", Usage: "<subcommand> [options] [args]",
			Help: `Commands that check the backend of the working directory, and that make what
keeps the states of units, delete a state, and move one to another unit.`,
			Prepare: command.Group,
		},
		Doctor(), bootstrap(), deleteState(), moveState(),
	}
}

// unitOptions contains the flags of a command on the states of units.
type unitOptions struct {
	f     *unitflags.Flags
	lock  flag.Lock
	force bool
}

// declare returns the flags of such a command, and the function that runs it.
func (o *unitOptions) declare(name string, run func(ctx context.Context, c *command.Call, o *unitOptions) int, own ...flag.Flag) (flag.Flags, command.Run) {
	fs := append(flag.Flags(own), o.f.DeclareFor(true)...)
	return fs.Show("non-interactive", "fail-fast", "backend-require-bootstrap", "disable-bucket-update"), func(ctx context.Context, c *command.Call) int {
		if err := o.f.Settle(c.Env); err != nil {
			return c.UsageError("Failed to parse command-line flags", err.Error())
		}
		o.f.NoUse(name, unitflags.Choosing+" non-interactive fail-fast force backend-bootstrap backend-require-bootstrap disable-bucket-update")
		units.WorkIn(c, o.f)
		return run(ctx, c, o)
	}
}

func bootstrap() command.Command {
	return command.Command{
		Name: "backend bootstrap", Synopsis: "Create the buckets and tables for the states of units", Usage: "[options]",
		Uses:  command.Backends,
		Units: command.TakesUnitFlags,
		Help: `Creates the bucket and the lock table that the remote_state of the unit
describes, for the backends s3 and gcs: with versioning, encryption, access
logs, a policy and no public access. For azurerm, it creates the resource
group, the storage account with versioning, and the container; with access_key
or sas_token, only the container. What exists is updated to the configuration,
unless disable_bucket_update is set. Running the command again changes nothing.
Units with disable_init in remote_state are left out.`,
		Examples: []command.Example{{Line: "backend bootstrap --all", Text: "Create the buckets and tables of all units below the directory."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &unitOptions{f: &unitflags.Flags{}}
			return o.declare("backend bootstrap", runBootstrap)
		},
	}
}

func deleteState() command.Command {
	return command.Command{
		Name: "backend delete", Synopsis: "Delete the state of a unit", Usage: "[options]",
		Uses:  command.State,
		Units: command.TakesUnitFlags,
		Help: `Deletes the state of the unit from its backend, under its lock. The objects in
the state are not destroyed, and no longer managed. If the backend keeps no old
versions, so that the state could not be restored, --force is needed.`,
		Examples: []command.Example{{Line: "backend delete", Text: "Delete the state of the unit in this directory, after a confirmation."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &unitOptions{f: &unitflags.Flags{}}
			own := append(o.lock.Flags(), flag.Bool(&o.force, "force", "Delete the state even if it could not be restored.").WithTwoDashes().Variables("TG_FORCE"))
			return o.declare("backend delete", runDelete, own...)
		},
	}
}

func moveState() command.Command {
	return command.Command{
		Name: "backend migrate", Synopsis: "Move the state of one unit to another", Usage: "[options] SRC-UNIT DST-UNIT",
		Uses:  command.State,
		Units: command.TakesUnitFlags, Mixed: true,
		Help: `Moves the state of one unit to the backend of another, for example when a unit
is renamed. The state is copied with its lineage and serial under both locks,
read back, and deleted from its old place. The types of the backends may
differ. It is an error if there is a state in the new place already. A move
that was interrupted can be run again.`,
		Args:     []command.Arg{{Name: "SRC-UNIT", Help: "The directory of the unit whose state is moved."}, {Name: "DST-UNIT", Help: "The directory of the unit that gets the state."}},
		Examples: []command.Example{{Line: "backend migrate old-name new-name", Text: "Move the state of a unit that was renamed."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &unitOptions{f: &unitflags.Flags{}}
			own := append(o.lock.Flags(), flag.Bool(&o.force, "force", "Move the state even if its backend keeps no old versions.").WithTwoDashes().Variables("TG_FORCE"))
			return o.declare("backend migrate", runMove, own...)
		},
	}
}

// open opens the unit of the working directory, or with --all the units below it.
func (o *unitOptions) open(ctx context.Context, c *command.Call, name string) (*estate.Estate, []*estate.Unit, diag.List) {
	eo, ds := o.options(c, name)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	if !o.f.Many() {
		e, u, more := units.OpenUnit(ctx, c, eo, units.UnitPath(c, o.f), o.f.Module)
		if ds = append(ds, more...); u == nil {
			return e, nil, ds
		}
		return e, []*estate.Unit{u}, ds
	}
	e, more := units.Open(ctx, c, eo)
	var all []*estate.Unit
	for _, u := range e.Found.Units {
		if u.Excluded == "" && !u.Outside && u.Broken == nil {
			all = append(all, u)
		}
	}
	return e, all, append(ds, more...)
}

func (o *unitOptions) options(c *command.Call, name string) (estate.Options, diag.List) {
	eo, ds := units.Options(c, o.f, name, nil, nil)
	eo.Discovery.Generate = !o.f.NoStackGenerate
	return eo, ds
}

// each calls do for each unit and reports its messages.
func (o *unitOptions) each(ctx context.Context, c *command.Call, e *estate.Estate, all []*estate.Unit, do func(u *estate.Unit) diag.List) int {
	code := 0
	for _, u := range all {
		if ctx.Err() != nil {
			return 1
		}
		ds := do(u)
		c.Report.TellFrom(e.Sources(), ds)
		if ds.HasErrors() {
			if code = 1; o.f.FailFast {
				break
			}
		}
	}
	return code
}

func runBootstrap(ctx context.Context, c *command.Call, o *unitOptions) int {
	e, all, ds := o.open(ctx, c, "init")
	defer e.Close(ctx)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	c.Report.TellFrom(e.Sources(), ds)
	return o.each(ctx, c, e, all, func(u *estate.Unit) diag.List {
		nothing, ds := e.Bootstrap(ctx, u)
		switch {
		case ds.HasErrors():
		case nothing == "":
			c.Report.Human.Say(units.About(u.Name, "the store is as its configuration says") + "\n")
		default:
			c.Report.Human.Say(units.About(u.Name, "there is nothing to make: "+nothing) + "\n")
		}
		return ds
	})
}

func runDelete(ctx context.Context, c *command.Call, o *unitOptions) int {
	e, all, ds := o.open(ctx, c, "destroy")
	defer e.Close(ctx)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	c.Report.TellFrom(e.Sources(), ds)
	var names []string
	for _, u := range all {
		if u.Name == "." {
			names = append(names, "this unit")
		} else {
			names = append(names, u.Name)
		}
	}
	if !o.f.NonInteractive {
		if !c.Prompt.May(true) {
			return c.Fail(diag.Errorf(diag.CodeCLINotApproved, nil, "Approval required", "Nobody can be asked whether the states are to be deleted. Use --non-interactive."))
		}
		answer, err := c.Prompt.Ask(ctx, prompt.Question{
			Title: fmt.Sprintf("Do you want to delete the state of %s?", view.ShortList(names)),
			Text:  "What it manages is not destroyed, and nothing manages it any more.\nOnly 'yes' will be accepted to continue.",
		})
		if err != nil {
			return c.Fail(diag.Errorf(diag.CodeCLINotApproved, nil, "Deletion was not approved", "Not approved: %s. Nothing was deleted.", err))
		}
		if answer != "yes" {
			c.Report.Human.Say("Nothing was deleted.\n")
			return 1
		}
	}
	return o.each(ctx, c, e, all, func(u *estate.Unit) diag.List {
		was, ds := e.DeleteState(ctx, u, o.force, o.lockOptions())
		switch {
		case ds.HasErrors():
		case was:
			c.Report.Human.Say(units.About(u.Name, "the state is deleted") + "\n")
		default:
			c.Report.Human.Say(units.About(u.Name, "there is no state") + "\n")
		}
		return ds
	})
}

func (o *unitOptions) lockOptions() estate.LockOptions {
	return estate.LockOptions{Off: !o.lock.On, Timeout: o.lock.Timeout}
}

func runMove(ctx context.Context, c *command.Call, o *unitOptions) int {
	if len(c.Args) != 2 {
		return c.UsageError("Two units are needed", "Name the directory of the unit whose state is moved, and that of the unit that gets it.")
	}
	eo, ds := o.options(c, "init")
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	var found [2]*estate.Unit
	dirs := [2]string{c.Path(c.Arg(0)), c.Path(c.Arg(1))}
	for eo.Discovery.Root = filepath.Dir(dirs[0]); !strings.HasPrefix(dirs[1], eo.Discovery.Root+string(filepath.Separator)); {
		eo.Discovery.Root = filepath.Dir(eo.Discovery.Root)
	}
	var e *estate.Estate
	for i, dir := range dirs {
		opened, u, more := units.OpenUnit(ctx, c, eo, dir, "")
		defer opened.Close(ctx)
		if ds = append(ds, more...); more.HasErrors() || u == nil {
			return units.FailWith(c, opened, ds)
		}
		found[i], e = u, opened
	}
	moved, more := e.MoveState(ctx, found[0], found[1], o.force, o.lockOptions())
	ds = slices.Concat(ds, more)
	c.Report.TellFrom(e.Sources(), ds)
	switch {
	case ds.HasErrors():
		return 1
	case moved:
		c.Report.Human.Say(fmt.Sprintf("The state of %s is that of %s now.\n", found[0].Name, found[1].Name))
	default:
		c.Report.Human.Say(fmt.Sprintf("%s has no state, so there is nothing to move.\n", found[0].Name))
	}
	return 0
}
