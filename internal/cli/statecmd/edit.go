package statecmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/stateedit"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

func rm() command.Command {
	return command.Command{
		Name: "state rm", Aliases: []string{"state remove"}, Synopsis: "Remove instances from the state", Usage: "[options] ADDRESS...",
		Uses:  command.State,
		Units: command.InUnit | command.OneUnit,
		Help: `Remove instances from the state, so that they are forgotten and not
destroyed. An address of a module or of a resource with count or for_each
stands for everything in it.`,
		Args:     []command.Arg{{Name: "ADDRESS", Help: "A module, a resource or an instance.", Repeated: true, Complete: flag.Instances}},
		Examples: []command.Example{{Line: "state rm -dry-run module.network", Text: "Show what would be forgotten."}},
		Prepare: func() (flag.Flags, command.Run) {
			o, dry := &common{stamps: true}, false
			fs := append(flag.Flags{flag.Bool(&dry, "dry-run", "Print what would be removed, and change nothing.")}, o.writing()...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) == 0 {
					return c.UsageError("Invalid number of arguments", "At least one address is required")
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				ts, ds := targets(c.Args)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				return o.edit(ctx, c, "state-rm", func(s *state.State) (*state.State, func(), diag.List) {
					next, gone, ds := stateedit.Remove(s, ts)
					if dry && ds.HasErrors() && ds[0].Code == stateedit.CodeNoMatch {
						return nil, func() {
							c.Report.Human.Say("Would have removed nothing.\n")
							c.Report.Stream.Log("Would have removed nothing")
						}, nil
					}
					if ds.HasErrors() {
						return nil, nil, ds
					}
					verb := "Removed "
					if dry {
						next, verb = nil, "Would remove "
					}
					return next, func() {
						for _, a := range gone {
							c.Report.Say(verb + a.String() + "\n")
						}
						if !dry {
							c.Report.Human.Say(fmt.Sprintf("Successfully removed %d resource instance(s).\n", len(gone)))
							c.Report.Stream.Log(fmt.Sprintf("Successfully removed %d resource instance(s)", len(gone)))
						}
					}, ds
				})
			}
		},
	}
}

func replaceProvider() command.Command {
	return command.Command{
		Name: "state replace-provider", Synopsis: "Replace provider in the state", Usage: "[options] FROM_PROVIDER_FQN TO_PROVIDER_FQN",
		Uses:  command.State,
		Units: command.InUnit | command.OneUnit,
		Help: `Give the resources of one provider in the state another one, for example
after a provider has changed its namespace.`,
		Args:     []command.Arg{{Name: "FROM", Help: "The source address of the provider in the state."}, {Name: "TO", Help: "The one to put in its place."}},
		Examples: []command.Example{{Line: "state replace-provider hashicorp/aws example.com/acme/aws", Text: "Use a fork."}},
		Prepare: func() (flag.Flags, command.Run) {
			o, approved := &common{stamps: true}, false
			fs := append(flag.Flags{flag.Bool(&approved, "auto-approve", "Do not ask.")}, o.writing()...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) != 2 {
					return c.UsageError("Invalid number of arguments", "Exactly two arguments expected")
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				if o.json.On && !approved {
					return c.UsageError("Auto-approve required", "With -json nothing can be asked: use -auto-approve too.")
				}
				var ps [2]addr.Provider
				for i := range ps {
					p, err := addr.ParseProvider(c.Arg(i))
					if err != nil {
						return c.Fail(diag.Errorf(diag.CodeCLIProviderAddress, nil, fmt.Sprintf("Invalid %q provider %q", [2]string{"from", "to"}[i], c.Arg(i)), "%s.", err))
					}
					ps[i] = p
				}
				return o.edit(ctx, c, "state-replace-provider", func(s *state.State) (*state.State, func(), diag.List) {
					if s == nil {
						return nil, nil, noState()
					}
					next, changed := stateedit.ReplaceProvider(s, ps[0], ps[1])
					if len(changed) == 0 {
						return nil, func() {
							c.Report.Human.Say("No matching resources found.\n")
							c.Report.Stream.Log("No matching resources found")
						}, nil
					}
					return confirm(ctx, c, next, changed, ps, approved)
				})
			}
		},
	}
}

func confirm(ctx context.Context, c *command.Call, next *state.State, changed []addr.AbsResource, ps [2]addr.Provider, approved bool) (*state.State, func(), diag.List) {
	say := c.Report.Human.Say
	names := make([]string, len(changed))
	for i, a := range changed {
		names[i] = a.String()
	}
	c.Report.Stream.Typed(fmt.Sprintf("%s will replace provider from %s to %s for %d resources", c.Report.Names.Product(), ps[0], ps[1], len(changed)), "replace_provider",
		map[string]any{"from": ps[0].String(), "to": ps[1].String(), "resources": names})
	say(fmt.Sprintf("%s will perform the following actions:\n\n  ~ Updating provider:\n    - %s\n    + %s\n\nChanging %d resources:\n\n", c.Report.Names.Product(), ps[0], ps[1], len(changed)))
	for _, name := range names {
		say("  " + name + "\n")
	}
	if !approved {
		answer, err := c.Prompt.Ask(ctx, prompt.Question{Title: "Do you want to make these changes?", Text: "Only 'yes' will be accepted to continue."})
		if err != nil {
			return nil, nil, diag.Errorf(diag.CodeCLINotApproved, nil, "Error asking for approval", "%s.", err)
		}
		if answer != "yes" {
			return nil, func() { say("Cancelled replacing providers.\n") }, nil
		}
	}
	return next, func() {
		said := fmt.Sprintf("Successfully replaced provider for %d resources", len(changed))
		say(said + ".\n")
		c.Report.Stream.Log(said)
	}, nil
}

func taint() command.Command {
	return tainting(true, command.Command{
		Name: "taint", Synopsis: "Mark a resource instance as not fully functional", Usage: "[options] <address>",
		Help: `Mark an instance in the state as tainted: the next plan replaces it. A
plan with -replace does the same without changing the state first.`,
	})
}

func untaint() command.Command {
	return tainting(false, command.Command{
		Name: "untaint", Synopsis: "Remove the 'tainted' state from a resource instance", Usage: "[options] <address>",
		Help: `Remove the "tainted" mark from an instance in the state, so that the next plan
does not replace it. It also removes a replacement that an apply with -defer
or -rounds has deferred.`,
	})
}

func tainting(on bool, cmd command.Command) command.Command {
	cmd.Uses, cmd.Units = command.State, command.InUnit|command.OneUnit
	cmd.Args = []command.Arg{{Name: "address", Help: "The instance.", Complete: flag.Instances}}
	cmd.Prepare = func() (flag.Flags, command.Run) {
		o, missing := &common{}, false
		fs := append(flag.Flags{flag.Bool(&missing, "allow-missing", "Succeed if there is no such instance.")}, o.writing()...)
		fs = append(fs, flag.Text(&o.state.Out, "state-out", "path", "Write the state to this file, not to the one that -state names.").Completes(flag.Files))
		return fs, func(ctx context.Context, c *command.Call) int {
			if len(c.Args) != 1 {
				return c.UsageError("Invalid arguments", fmt.Sprintf("The %s command expects exactly one argument.", cmd.Name))
			}
			if !o.json.Use(c.Report) {
				return 1
			}
			defer c.Report.Finish()
			a, err := addr.ParseInstance(c.Arg(0))
			if err != nil {
				return c.Fail(badAddress(c.Arg(0), err))
			}
			return o.edit(ctx, c, cmd.Name, func(s *state.State) (*state.State, func(), diag.List) {
				next, ds := stateedit.Taint(s, a, on)
				var warnings diag.List
				if !on { // OpenTofu's untaint also reports the warnings of the root module, its taint does not
					_, warnings = c.Directory.Root()
					warnings = warnings.Warnings()
				}
				if missing && len(ds) > 0 && ds[0].Code == stateedit.CodeMissing {
					return nil, nil, append(warnings, diag.Warnf(diag.CodeStateNoInstance, nil, "No such resource instance", "Resource instance %s was not found, but this is not an error because -allow-missing was set.", a)...)
				}
				text := fmt.Sprintf("Resource instance %s has been marked as tainted.", a)
				if !on {
					text = fmt.Sprintf("Resource instance %s has been successfully untainted.", a)
				}
				return next, func() { c.Report.Say(text + "\n") }, append(warnings, ds...)
			})
		}
	}
	return cmd
}

func push() command.Command {
	return command.Command{
		Name: "state push", Synopsis: "Update remote state from a local state file", Usage: "[options] PATH",
		Uses:  command.State,
		Units: command.InUnit | command.OneUnit,
		Help: `Write a state file, or with "-" standard input, to the configured backend. A
state with another lineage, or with a lower serial than the current one, is
refused unless -force is given. A pushed errored.tfstate is renamed to
errored.tfstate.pushed.`,
		Args:     []command.Arg{{Name: "PATH", Help: "The file; \"-\" for standard input.", Complete: flag.Files}},
		Examples: []command.Example{{Line: "state push errored.tfstate", Text: "Save a state that an apply could not write."}},
		Prepare: func() (flag.Flags, command.Run) {
			o, force := &common{}, false
			fs := append(append(flag.Flags{flag.Bool(&force, "force", "Write the state even if its lineage differs or its serial is lower.")}, o.state.Lock.Flags()...), flag.Vars(&o.vars)...)
			fs = append(fs, o.json.Flags()...)
			fs = append(fs, o.state.VersionFlag())
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) != 1 {
					return c.UsageError("Invalid number of arguments", "Exactly one argument expected")
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				s, b, ds := given(c)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				at, _, ds := o.open(ctx, c)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				if s == nil {
					var more diag.List
					s, more = pushed(c.Arg(0), b, at.Sealer)
					if ds = append(ds, more...); more.HasErrors() {
						return c.Fail(ds)
					}
				}
				h, more := o.takeAt(ctx, c, at, "state-push")
				ds = append(ds, more...)
				if h == nil {
					return c.Fail(ds)
				}
				if more := allowed(h.Current(), s, force); more.HasErrors() {
					ds = append(ds, more...)
				} else if !h.Current().Equal(s) || h.Current() == nil || h.Current().Lineage != s.Lineage || h.Current().Serial != s.Serial {
					ds = append(ds, h.Replace(ctx, s)...)
				}
				ds = append(ds, h.Release()...)
				if !ds.HasErrors() {
					ds = append(ds, renamePushed(c)...)
				}
				return c.Report.Status(ds)
			}
		},
	}
}

// renamePushed renames errored.tfstate after its state was pushed, so that help and later runs do
// not report it again.
func renamePushed(c *command.Call) diag.List {
	name := c.Arg(0)
	if !statemgr.IsErrored(filepath.Base(name)) {
		return nil
	}
	if err := os.Rename(c.Path(name), c.Path(name+statemgr.PushedSuffix)); err != nil {
		return diag.Warnf(diag.CodeStateFile, nil, "Failed to remove a file", "The state of %s was pushed, but the file cannot be renamed: %s. Remove it.", name, err)
	}
	c.Report.Say(fmt.Sprintf("The state of %s was pushed. The file was renamed to %s.\n", name, name+statemgr.PushedSuffix))
	return nil
}

// given reads the state to push. It returns a state if it could parse the file as a stream,
// which needs less memory. Otherwise it returns the text.
func given(c *command.Call) (*state.State, []byte, diag.List) {
	name := c.Arg(0)
	var b []byte
	var err error
	if name == "-" {
		b, err = io.ReadAll(c.System.Stdin)
	} else {
		if s := streamed(c.Path(name)); s != nil {
			return s, nil, nil
		}
		b, err = readfile.Large(c.Path(name))
	}
	if err != nil {
		var e *fs.PathError
		if errors.As(err, &e) {
			err = fmt.Errorf("%s: %w", name, e.Err)
		}
		return nil, nil, diag.Errorf(diag.CodeStateFile, nil, "Failed to open the given state file", "%s.", err)
	}
	return nil, b, nil
}

// streamed parses a state file as a stream. It returns nil if the caller must read the file as
// a whole.
func streamed(path string) *state.State {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if s, ok := statefile.ParseStream(f, false); ok {
		return s
	}
	return nil
}

// pushed parses the text of the state to push, which may be encrypted, as errored.tfstate is.
// sealer is nil if states are not encrypted.
func pushed(name string, b []byte, sealer sealing.Sealer) (*state.State, diag.List) {
	if sealer != nil && encryption.Sealed(b) {
		plain, _, err := sealer.Open(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			b, err = io.ReadAll(plain)
		}
		if err != nil {
			return nil, diag.Errorf(diag.CodeStateFile, nil, "Failed to read the given state file", "%s cannot be decrypted: %s.", name, err)
		}
	}
	s, ds := statefile.Parse(name, b)
	if !ds.HasErrors() && s == nil {
		ds = diag.Errorf(diag.CodeStateFile, nil, "Failed to read the given state file", "There is no state in %s.", name)
	}
	return s, ds
}

// allowed returns an error if the state next must not replace the state now.
func allowed(now, next *state.State, force bool) diag.List {
	if force || now == nil || now.Empty() { // nothing would be lost
		return nil
	}
	const summary = "Failed to write the imported state"
	switch {
	case next.Lineage != now.Lineage && now.Lineage != "":
		return diag.List{{Code: diag.CodeStateLineage, Severity: diag.Error, Summary: summary, Detail: fmt.Sprintf("The state in the file has the lineage %q and the present one %q: they are states of different configurations. Use -force to write it all the same.", next.Lineage, now.Lineage)}}
	case next.Serial < now.Serial:
		return diag.List{{Code: diag.CodeStateSerial, Severity: diag.Error, Summary: summary, Detail: fmt.Sprintf("cannot import state with serial %d over newer state with serial %d. Use -force to write it all the same.", next.Serial, now.Serial)}}
	case next.Serial == now.Serial && !next.Equal(now):
		return diag.List{{Code: diag.CodeStateSerial, Severity: diag.Error, Summary: summary, Detail: fmt.Sprintf("cannot overwrite existing state with serial %d with a different state that has the same serial. Use -force to write it all the same.", now.Serial)}}
	}
	return nil
}

func forceUnlock() command.Command {
	return command.Command{
		Name: "force-unlock", Synopsis: "Release a stuck lock on the current workspace", Usage: "LOCK_ID",
		Uses:  command.Backends,
		Units: command.InUnit,
		Help: `Release a lock on the state that a run left behind. No infrastructure is
changed. Make sure that the run has ended: two runs at the same time can lose
state.

The lock of an "init -migrate-state" that was given -backend-config is released
with the same -backend-config here.

Over several units, "run --all force-unlock RUN_ID" releases the locks of one
run that was killed. Without RUN_ID, it lists the runs that hold locks. It
releases nothing if there are several, if a lock names no run, or if the
process of the run still exists on this machine. To read who holds a lock, it
takes the locks of all selected units for a moment.`,
		Args: []command.Arg{{Name: "LOCK_ID", Help: "The ID of the lock, from the error message about it."}},
		Examples: []command.Example{
			{Line: "run --all force-unlock", Text: "Release the locks that a killed run left on the states of several units."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o, force := &common{}, false
			fs := append(append(flag.Flags{
				flag.Bool(&force, "force", "Do not ask."),
				flag.List(&o.backendConfig, "backend-config", "path", "What the init was given that left the lock: a file with assignments or a 'key=value'. May be repeated.").Completes(flag.Files),
			}, flag.Vars(&o.vars)...), o.json.Flags()...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) != 1 {
					return c.UsageError("Invalid number of arguments", "Expected a single argument: LOCK_ID")
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return unlock(ctx, c, o, force)
			}
		},
	}
}

func unlock(ctx context.Context, c *command.Call, o *common, force bool) int {
	stores, workspace, locate, ds := o.lockable(ctx, c)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	var places []string
	var unlockers []store.Unlocker
	for _, st := range stores {
		if u, ok := st.(store.Unlocker); ok {
			unlockers = append(unlockers, u)
			if p, ok := st.(backend.Placer); ok {
				places = append(places, p.Place())
			}
		}
	}
	if len(unlockers) == 0 {
		return c.Fail(append(ds, locate(diag.Errorf(diag.CodeCLILocalLock, nil, "State locked by another local process", "Local state cannot be unlocked by another process: the lock ends with the process that holds it. If a run still holds the lock and is not wanted any more, end that process."))...))
	}
	id := c.Arg(0)
	place := "the workspace " + cmp.Or(workspace, store.Default)
	if len(places) > 0 {
		place += " (" + strings.Join(places, ", ") + ")"
	}
	if !force {
		answer, err := c.Prompt.Ask(ctx, prompt.Question{
			Title: "Do you really want to force-unlock?",
			Text:  fmt.Sprintf("The lock %s on the state of %s is released.\nThis allows other runs to change the state, even if the run that holds the lock\nis still at work: make sure that it has ended.\n\nOnly 'yes' will be accepted to confirm.", id, place),
		})
		switch {
		case err != nil:
			return c.Fail(append(ds, diag.Errorf(diag.CodeCLINotApproved, nil, "Error asking for confirmation", "%s. Use -force to release the lock without a question.", err)...))
		case answer != "yes":
			c.Report.Say("force-unlock cancelled.\n")
			return 1
		}
	}
	var failed diag.List
	for i, u := range unlockers {
		more := u.ForceUnlock(ctx, id)
		if !more.HasErrors() {
			failed = nil
			break
		}
		if failed = append(failed, more...); i == len(unlockers)-1 {
			return c.Fail(append(ds, failed...))
		}
	}
	c.Report.Human.Good(fmt.Sprintf("%s state has been successfully unlocked!", c.Report.Names.Product()))
	c.Report.Say(fmt.Sprintf("\n\nThe lock %s on the state of %s was released, and other runs can\nchange the state now.\n", id, place))
	return c.Report.Status(ds)
}

// lockable returns the stores whose lock the user may mean. This is the store in use. If init
// must move the state first, it returns both the old and the new store, since an earlier init
// may have left its lock in either.
func (o *common) lockable(ctx context.Context, c *command.Call) (stores []store.Store, workspace string, locate func(diag.List) diag.List, ds diag.List) {
	at, place, workspace, ds := o.openAt(ctx, c)
	if !ds.HasErrors() {
		return []store.Store{at.Store}, workspace, place.Located, ds
	}
	if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == selection.InitCode }) {
		return nil, "", nil, ds
	}
	workspace, more := c.Directory.Workspace()
	if more.HasErrors() {
		return nil, "", nil, more
	}
	pending, more := c.PendingPlaces(ctx, o.vars, o.backendConfig)
	if more.HasErrors() {
		return nil, "", nil, append(ds, more...) // init needs options that are not in the configuration
	}
	for _, p := range pending {
		if st, more := c.OpenStore(ctx, p, workspace, o.state.StateFiles); !more.HasErrors() {
			stores = append(stores, st)
		}
	}
	if len(stores) == 0 {
		return nil, "", nil, ds // the first store has no such workspace before init
	}
	return stores, workspace, pending[0].Located, nil
}
