package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// # Locks of a killed run
//
// All locks of a run contain the same mark (store.RunMark). "run --all force-unlock" releases
// the locks with one mark. It never releases the lock of another run, or of another tool.

// unitLock is the lock on the state of a unit.
type unitLock struct {
	unit string
	lock *estate.LeftLock
	run  store.RunMark // without ID if the lock names no run
}

// holderText describes the lock for lists.
func (l unitLock) holderText() string {
	switch {
	case l.lock.Holder == nil && l.lock.Bound:
		return "a process that is working holds the lock"
	case l.lock.Holder == nil:
		return "its store does not report who holds the lock"
	}
	return l.lock.Holder.ID + ", " + backend.Describe(l.lock.Holder)
}

// unlocking is one run of force-unlock over many units.
type unlocking struct {
	*command.Call
	estate *estate.Estate
	force  bool
}

// unlockRun implements force-unlock over many units. words are the words after its name.
func unlockRun(ctx context.Context, c *command.Call, f *unitflags.Flags, words []string) int {
	x := &unlocking{Call: c}
	var vars []workdir.VarFlag
	var backendConfig []string
	var json flags.JSON
	fs := append(append(flag.Flags{flag.Bool(&x.force, "force", "Do not ask."), flag.List(&backendConfig, "backend-config", "path", "")}, flag.Vars(&vars)...), json.Flags()...)
	args, _, err := fs.Parse(words, c.Env, true)
	if err != nil {
		return c.Report.UsageError("run", "Failed to parse command-line flags", err.Error())
	}
	if len(backendConfig) > 0 {
		return c.Report.UsageError("run", "Failed to parse command-line flags", "-backend-config names one backend, so it cannot be given with --all: run the command in the unit's own directory")
	}
	if len(args) > 1 {
		return c.Report.UsageError("run", "Invalid number of arguments", "Expected at most one argument: RUN_ID")
	}
	if !json.Use(c.Report) {
		return 1
	}
	defer c.Report.Finish()
	x.force = x.force || f.NonInteractive
	o, ds := units.Options(c, f, "plan", nil, vars)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	o.Discovery.Generate, o.Discovery.Whole = !f.NoStackGenerate, true
	e, more := units.Open(ctx, c, o)
	defer e.Close(ctx)
	if ds = append(ds, more...); ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	c.Report.TellFrom(e.Sources(), ds)
	x.estate = e
	locks, ds := x.find(ctx)
	c.Report.TellFrom(e.Sources(), ds)
	code := min(len(ds.Errors()), 1)
	if len(locks) == 0 && len(args) == 0 {
		c.Report.Say("No unit is locked.\n")
		return code
	}
	chosen, ds := x.choose(locks, append(args, "")[0])
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if yes, ds := x.approved(ctx, chosen); !yes {
		c.Report.Tell(ds)
		return 1
	}
	return max(code, x.release(ctx, chosen))
}

// maxLooks is the number of states whose locks are read at the same time.
const maxLooks = 8

// find returns the locks of the selected units, in the order of their names.
func (x *unlocking) find(ctx context.Context) (out []unitLock, ds diag.List) {
	var all []*estate.Unit
	for _, u := range x.estate.Found.Units {
		switch {
		case u.Excluded != "" || u.Outside:
		case u.Broken != nil:
			ds = append(ds, u.Broken...)
		default:
			all = append(all, u)
		}
	}
	found, said := make([]*estate.LeftLock, len(all)), make([]diag.List, len(all))
	var wg sync.WaitGroup
	places := make(chan struct{}, maxLooks)
	for i, u := range all {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			found[i], said[i] = x.estate.LockOf(ctx, u)
		})
	}
	wg.Wait()
	for i, u := range all {
		if ds = append(ds, said[i]...); found[i] == nil {
			continue
		}
		l := unitLock{unit: u.Name, lock: found[i]}
		if h := found[i].Holder; h != nil {
			l.run, _ = h.Run()
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b unitLock) int { return strings.Compare(a.unit, b.unit) })
	return out, ds
}

// choose lists the locks, and returns those of the run with the given ID. Without an ID it
// returns those of the only run, unless there are other locks.
func (x *unlocking) choose(locks []unitLock, id string) ([]unitLock, diag.List) {
	byRun := map[string][]unitLock{}
	var runs []string
	for _, l := range locks {
		if byRun[l.run.ID] == nil && l.run.ID != "" {
			runs = append(runs, l.run.ID)
		}
		byRun[l.run.ID] = append(byRun[l.run.ID], l)
	}
	var text strings.Builder
	list := func(head string, of []unitLock) {
		fmt.Fprintf(&text, "%s\n", head)
		for _, l := range of {
			fmt.Fprintf(&text, "  %s: %s\n", l.unit, l.holderText())
		}
	}
	for _, run := range runs {
		if id == "" || id == run {
			list("Locks of the run "+run+":", byRun[run])
		}
	}
	if others := byRun[""]; len(others) > 0 && id == "" {
		list("Locks that name no run:", others)
	}
	if text.Len() > 0 {
		x.Report.Say(text.String())
	}
	switch {
	case id != "" && byRun[id] == nil:
		return nil, diag.Errorf(diag.CodeCLIRunLocks, nil, "No lock of this run", "None of the selected units is locked by the run %s. Leave out the ID to list the runs that hold locks.", id)
	case id != "":
	case len(runs) > 1:
		return nil, diag.Errorf(diag.CodeCLIRunLocks, nil, "Locks of several runs", "Several runs hold locks. Nothing was released. Give the ID of one run: \"run --all force-unlock RUN_ID\".")
	case len(byRun[""]) > 0 && len(runs) == 0:
		return nil, diag.Errorf(diag.CodeCLIRunLocks, nil, "Locks without a run", "The locks name no run, so they may belong to different runs. Nothing was released. Release a lock in the directory of its unit with \"force-unlock LOCK_ID\".")
	case len(byRun[""]) > 0:
		return nil, diag.Errorf(diag.CodeCLIRunLocks, nil, "Locks without a run", "Some locks name no run. Nothing was released. Release those of the run with \"run --all force-unlock %s\".", runs[0])
	default:
		id = runs[0]
	}
	for _, l := range byRun[id] {
		if why := x.working(l); why != "" {
			return nil, diag.Errorf(diag.CodeCLIRunLocks, nil, "Run is still working", "The run %s is still working: %s. Nothing was released. To end the run, interrupt its process.", id, why)
		}
	}
	return byRun[id], nil
}

// working returns the reason why the run that holds a lock is still working, or "" if it may
// have ended.
func (x *unlocking) working(l unitLock) string {
	host := "@" + x.System.Host()
	switch p := l.run.Process; {
	case l.lock.Bound:
		return "the lock on the state of " + l.unit + " ends with the process that holds it"
	case p == 0 || host == "@" || !strings.HasSuffix(l.lock.Holder.Who, host) || p == x.System.Process:
		return ""
	case x.System.Alive(p):
		return fmt.Sprintf("its process %d exists on this machine", p)
	}
	return ""
}

// approved asks whether the locks may be released.
func (x *unlocking) approved(ctx context.Context, locks []unitLock) (yes bool, ds diag.List) {
	if x.force {
		return true, nil
	}
	var names []string
	for _, l := range locks {
		names = append(names, l.unit)
	}
	answer, err := x.Prompt.Ask(ctx, prompt.Question{
		Title: "Do you really want to force-unlock?",
		Text:  fmt.Sprintf("The locks of the run %s on the states of %s are released.\nThis allows other runs to change these states, even if the run is still at work\non another machine: make sure that it has ended.\n\nOnly 'yes' will be accepted to confirm.", locks[0].run.ID, view.ShortList(names)),
	})
	switch {
	case err != nil:
		return false, diag.Errorf(diag.CodeCLINotApproved, nil, "Error asking for confirmation", "%s. Use -force to release the locks without a question.", err)
	case answer != "yes":
		x.Report.Say("force-unlock cancelled.\n")
	}
	return answer == "yes", nil
}

// release releases the locks and reports each.
func (x *unlocking) release(ctx context.Context, locks []unitLock) (code int) {
	for _, l := range locks {
		if ctx.Err() != nil {
			return 1
		}
		ds := l.lock.Release(ctx)
		x.Report.TellFrom(x.estate.Sources(), ds)
		if ds.HasErrors() {
			code = 1
			continue
		}
		x.Report.Say(units.About(l.unit, "the lock "+l.lock.Holder.ID+" is released") + "\n")
	}
	return code
}
