// Package statecmd implements the commands that read and edit a state: state list, identities,
// show, mv, rm, pull, push, recover and replace-provider, taint, untaint and force-unlock.
//
// Main function: Commands. The one rule: package stateedit edits the state. This package
// locks, backs up, writes and reports it.
package statecmd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// Commands declares the commands of this package.
func Commands() []command.Command {
	return []command.Command{
		{
			Name: "state", Synopsis: "Advanced state management", Usage: "<subcommand> [options] [args]",
			Help: `Commands that inspect the state, and that change it without changing the
infrastructure. Each change is made under the lock of the state. For a local
state file, a backup is kept.`,
			Prepare: command.Group,
		},
		list(), identities(), show(), mv(), rm(), pull(), push(), recoverJournal(), replaceProvider(), taint(), untaint(), forceUnlock(),
	}
}

// common contains the flags that these commands share.
type common struct {
	state flag.State
	vars  []workdir.VarFlag
	json  flags.JSON

	backendConfig []string // -backend-config of force-unlock

	stamps bool // the default name of the backup contains the time, as for commands that change addresses
}

func (o *common) reading() flag.Flags {
	return append(append(flag.Flags{o.state.PathFlag()}, flag.Vars(&o.vars)...), append(o.json.Flags(), flag.NoColor())...)
}

func (o *common) writing() flag.Flags {
	fs := append(o.state.Lock.Flags(), o.reading()...)
	return append(fs,
		flag.Text(&o.state.Backup, "backup", "path", "Where to back up the existing state file before it changes.").Completes(flag.Files),
		o.state.VersionFlag())
}

// open opens the store of the state that the flags select. It neither locks nor reads the
// state.
func (o *common) open(ctx context.Context, c *command.Call) (at statemgr.Options, workspace string, ds diag.List) {
	at, _, workspace, ds = o.openAt(ctx, c)
	return at, workspace, ds
}

// openAt is open, and also returns the backend. For a state file whose backup has the time in
// its name, it sets the path of the backup.
func (o *common) openAt(ctx context.Context, c *command.Call) (at statemgr.Options, place *workdir.OpenedBackend, workspace string, ds diag.List) {
	place, ds = c.WhereState(ctx, o.vars)
	if ds.HasErrors() {
		return at, place, "", ds
	}
	workspace, more := c.Directory.Workspace()
	if ds = append(ds, more...); ds.HasErrors() {
		return at, place, "", ds
	}
	if o.state.Path != "" {
		if place, more = c.LocalFile(ctx, place.Encryption); more.HasErrors() {
			return at, place, "", append(ds, more...)
		}
		workspace = store.Default
	}
	stamp := o.stamps && (o.state.Backup == "" || o.state.Backup == "-")
	if stamp {
		o.state.Backup = ""
	}
	st, more := c.OpenStore(ctx, place, workspace, o.state.StateFiles)
	if file, ok := st.(interface{ Path() string }); ok && stamp {
		o.state.Backup = stamped(c, file.Path())
		st, more = c.OpenStore(ctx, place, workspace, o.state.StateFiles)
	}
	if ds = append(ds, more...); more.HasErrors() {
		return at, place, "", ds
	}
	return c.PlaceOf(place, st, workspace).Manager(c.Report.Context), place, workspace, ds
}

// read reads the state without locking it.
func (o *common) read(ctx context.Context, c *command.Call) (*state.State, diag.List) {
	at, _, ds := o.open(ctx, c)
	if ds.HasErrors() {
		return nil, ds
	}
	s, more := statemgr.Read(ctx, at)
	return s, append(ds, more...)
}

// outline reads the state without the attributes of its objects.
func (o *common) outline(ctx context.Context, c *command.Call) (*state.State, diag.List) {
	at, _, ds := o.open(ctx, c)
	if ds.HasErrors() {
		return nil, ds
	}
	s, more := statemgr.ReadSummary(ctx, at)
	return s, append(ds, more...)
}

// take locks and reads the state. operation is the operation that the lock names.
func (o *common) take(ctx context.Context, c *command.Call, operation string) (*statemgr.State, diag.List) {
	at, _, ds := o.open(ctx, c)
	if ds.HasErrors() {
		return nil, ds
	}
	h, more := o.takeAt(ctx, c, at, operation)
	return h, append(ds, more...)
}

// takeAt locks and reads a state that is open.
func (o *common) takeAt(ctx context.Context, c *command.Call, at statemgr.Options, operation string) (*statemgr.State, diag.List) {
	return statemgr.Take(ctx, o.locking(c, at, operation))
}

// locking returns the options of a state with the content of its lock. With -lock=false, the
// state is not locked.
func (o *common) locking(c *command.Call, at statemgr.Options, operation string) statemgr.Options {
	at.Run = store.LockInfo{Operation: operation, Who: c.Who(), Info: c.Mark().String(), Version: statefile.Version, Created: c.Now()}
	if o.state.On {
		at.Lock, at.Timeout = &at.Run, o.state.Timeout
	}
	return at
}

// stamped returns the path of a backup that does not exist yet: that of the state with the
// current time.
func stamped(c *command.Call, path string) string {
	for at := c.Now().Unix(); ; at++ { // a change in the same second has the name
		name := fmt.Sprintf("%s.%d.backup", path, at)
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}

// edit locks the state, writes the state that change returns, and unlocks it. If next is nil,
// it writes nothing. It reports the messages at the end and calls done, which may be nil, if
// there are no errors.
func (o *common) edit(ctx context.Context, c *command.Call, operation string, change func(*state.State) (next *state.State, done func(), ds diag.List)) int {
	h, ds := o.take(ctx, c, operation)
	if h == nil {
		return c.Fail(ds)
	}
	next, done, more := change(h.Current())
	if ds = append(ds, more...); !ds.HasErrors() && next != nil {
		ds = append(ds, h.Write(ctx, next)...)
	}
	ds = append(ds, h.Release()...)
	if !ds.HasErrors() && done != nil {
		done()
	}
	return c.Report.Status(ds)
}

// targets parses addresses.
func targets(args []string) ([]addr.Target, diag.List) {
	var out []addr.Target
	var ds diag.List
	for _, a := range args {
		t, err := addr.ParseTarget(a)
		if err != nil {
			ds = append(ds, badAddress(a, err)...)
			continue
		}
		out = append(out, t)
	}
	return out, ds
}

func badAddress(address string, err error) diag.List {
	return diag.List{{Code: diag.CodeStateAddress, Severity: diag.Error, Summary: "Invalid address", Detail: fmt.Sprintf("%q is not the address of a module, resource or instance: %s.", address, strings.TrimSuffix(err.Error(), "."))}}
}

// noState returns the error for commands that need a state if there is none.
func noState() diag.List {
	return diag.List{{Code: diag.CodeStateNone, Severity: diag.Error, Summary: "No state file was found", Detail: fmt.Sprintf("State management commands require a state file. Run this command in a directory where %s has been run or use the -state flag to point the command to a specific state location.", view.Product)}}
}
