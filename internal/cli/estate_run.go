package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/picture"
)

// estateRun is a command over all units.
type estateRun struct {
	*session
	f       *unitFlags
	op      operationFlags
	name    string // plan, apply, destroy, validate, output, init
	args    []string
	approve bool // -auto-approve
	detail  bool // -detailed-exitcode
	estate  *estate.Estate
	stop    chan struct{}
	began   time.Time
	asking  context.Context // that of questions: an interrupt ends it

	out               string            // -out
	targets, excludes []addr.Target     // as the flags and their files have them
	saved             *estate.SavedPlan // that is applied; nil if there is none
	log               *unitLog
	live              *view.Live // nil unless on a terminal
	folds             *folds
	width             int

	mu       sync.Mutex
	notes    map[string]json.RawMessage // what is saved of units besides
	notesErr error
	heard    map[[2]string]int // warnings without a place, and in how many units they came up
	page     pageNotes
	found    diag.List // errors that do not keep outputs from being read
}

// runAll runs a command over the units below the working folder, or applies the saved
// plan of the one unit in it.
func (s *session) runAll(ctx context.Context, name string, f *unitFlags, args []string) int {
	r := &estateRun{session: s, f: f, name: name, args: args, stop: make(chan struct{}), folds: newFolds(), notes: map[string]json.RawMessage{}, width: len("Total")}
	if s.SpareHeap != nil {
		s.SpareHeap() // an estate has many units, and a machine often little memory
	}
	var err error
	if r.log, err = newUnitLog(f, s.Dir, s.Now); err != nil {
		return s.usageError("run", "Failed to parse command-line flags", err.Error())
	}
	r.log.command = append([]string{name}, args...)
	rest, code := r.parseArgs(args)
	if code != 0 {
		return code
	}
	if name == "apply" && len(rest) == 1 {
		if code := r.readSaved(rest[0]); code != 0 {
			return code
		}
		rest = nil
	} else if name == "apply" && len(rest) == 0 && f.outDir != "" {
		if code := r.readSavedDir(f.outDir); code != 0 {
			return code
		}
	}
	if len(rest) > 0 {
		return s.usageError("run", "Too many command line arguments", fmt.Sprintf("%q cannot be given with --all.", rest[0]))
	}
	if name != "output" {
		if !s.useJSON(r.op.json) {
			return 1
		}
		defer s.finish()
	}
	if (name == "apply" || name == "destroy") && s.human == nil && !r.approve && !f.nonInteractive && r.saved == nil {
		return s.fail(diag.Errorf(nil, "Approval required", "%s cannot ask for approval when -json is set. Use -auto-approve or --non-interactive.", view.Product))
	}
	o, ds := s.estateOptions(f, name, args, r.op.vars)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	o.Destroy, o.Look.Generate, o.Look.Whole = r.op.destroy, !f.noStackGenerate, true
	if alone := !f.many(); alone {
		if ds = r.alone(&o); ds.HasErrors() {
			return s.fail(ds)
		}
	}
	o.Inputs.Elsewhere = o.Inputs.Elsewhere || r.saved != nil // the plan holds them
	if o.At = s.Now().UTC(); r.saved != nil {
		o.At = r.saved.About.Time
	}
	r.began = o.At
	about := ds
	e, more := estate.Open(ctx, o)
	defer e.Close(ctx)
	more = append(more, e.Ungenerated...)
	if name == "output" && e.Chosen {
		r.found, more = more.Errors(), more.Warnings()
	}
	if !more.HasErrors() {
		more = append(more, bareIncludes(ctx, e, &f.flagUse, e.Units...)...)
	}
	if ds = append(ds, more...); ds.HasErrors() {
		return r.failEstate(e, once(append(ds, e.Check(ctx, f.strict)...)))
	}
	r.estate = e
	if !f.many() {
		if skip, code := r.meant(ctx); skip {
			return code
		}
	}
	if r.saved != nil {
		if gone := e.Cover(r.saved); len(gone) > 0 {
			return r.failEstate(e, diag.Errorf(nil, "Saved plan is stale", "The saved plan is about units that there are no longer: %s. Nothing was applied. Plan again.", strings.Join(gone, ", ")))
		}
	}
	r.tellEstate(slices.Concat(about.Warnings(), e.Warnings))
	if !f.noDeprecation {
		r.tellEstate(e.Deprecated())
	}
	if len(e.Units) == 0 {
		s.tell(diag.Warnf(nil, "No units found", "There are no units in %s.", s.Dir))
		if ds := r.keep(ctx, []*estate.Result{}); ds.HasErrors() {
			return r.fail(ds)
		}
		return r.written(nil)
	}
	for _, u := range e.Units {
		r.width = max(r.width, len(u.Name))
	}
	return r.dispatch(ctx)
}

func (r *estateRun) dispatch(ctx context.Context) int {
	if r.name == "output" {
		return r.outputs(ctx)
	}
	if ds := r.estate.Check(ctx, r.f.strict); ds.HasErrors() {
		return r.failEstate(r.estate, ds)
	}
	var once sync.Once
	asking, unask := context.WithCancelCause(ctx)
	defer unask(nil)
	r.asking = asking
	r.gently(func() {
		once.Do(func() {
			close(r.stop)
			unask(errors.New("the run was interrupted"))
		})
	})
	defer r.gently(nil)
	r.whenKilled(r.estate.Abandon)
	defer r.whenKilled(nil)
	switch r.name {
	case "plan":
		results := r.run(ctx, estate.Plan, nil)
		r.showPlans(results)
		if ds := r.keep(ctx, results); ds.HasErrors() {
			r.tell(ds)
			r.end(results)
			return 1
		}
		return r.end(results)
	case "validate", "init":
		op := estate.Validate
		if r.name == "init" {
			op = estate.Init
		}
		return r.end(r.run(ctx, op, nil))
	}
	return r.apply(ctx)
}

// keep writes a plan to the files that are asked for.
func (r *estateRun) keep(ctx context.Context, results []*estate.Result) diag.List {
	if r.name != "plan" || results == nil {
		return nil
	}
	var units []picture.Unit
	if r.saves() || r.f.html != "" {
		units = r.pageUnits(ctx, results)
	}
	if r.saves() {
		r.notePages(units, results)
	}
	return slices.Concat(r.save(results), r.saveEach(results), r.drawPage(units, results))
}

// parseArgs reads the flags of the command that runs in the units.
func (r *estateRun) parseArgs(args []string) (rest []string, code int) {
	f := newFlags(r.name)
	switch r.name {
	case "plan":
		r.op.add(f)
		f.StringVar(&r.out, "out", "", "")
		f.BoolVar(&r.detail, "detailed-exitcode", false, "")
	case "apply", "destroy":
		r.op.add(f)
		f.BoolVar(&r.approve, "auto-approve", false, "")
		f.BoolVar(&r.detail, "detailed-exitcode", false, "")
	case "validate", "init":
		r.op.json.add(f)
		addVars(f, &r.op.vars)
		var input bool
		f.BoolVar(&input, "input", false, "")
	case "output":
		f.BoolVar(&r.op.json.on, "json", false, "")
		f.BoolVar(&r.op.reveal, "show-sensitive", false, "")
	default:
		return nil, r.fail(diag.Errorf(nil, "Command not available for all units", "%q cannot be run with --all in this version. What can: plan, apply, destroy, validate, init and output.", r.name))
	}
	if !r.parse(f, args) {
		return nil, 1
	}
	err := unavailable(f)
	if r.name != "plan" && r.f.html != "" {
		err = noPage()
	}
	if err != nil {
		return nil, r.fail(diag.Errorf(nil, "Failed to parse command-line flags", "%s", err))
	}
	if r.name == "destroy" {
		r.op.destroy = true
	}
	return f.Args(), 0
}

// unavailable refuses flags that mean one folder.
func unavailable(f *flag.FlagSet) error {
	var err error
	f.Visit(func(fl *flag.Flag) {
		switch fl.Name {
		case "state", "state-out", "backup", "generate-config-out":
			err = fmt.Errorf("-%s names one file, so it cannot be given with --all: run the command in the unit's own folder", fl.Name)
		}
	})
	return err
}

func (r *estateRun) options(op estate.Op) (estate.RunOptions, diag.List) {
	po, ds := r.op.options(r.session)
	r.targets, r.excludes = po.Targets, po.Excludes
	every, more := r.persistEvery()
	return estate.RunOptions{
		Op: op,
		Plans: estate.Plans{
			Destroy: r.op.destroy, RefreshOnly: r.op.refreshOnly, SkipRefresh: !r.op.refresh && (r.name == "plan" || r.name == "apply" || r.name == "destroy"),
			Targets: po.Targets, Excludes: po.Excludes, Replace: po.Replace,
		},
		Queue:  estate.Queue{FailFast: r.f.failFast, IgnoreErrors: r.f.ignoreErrors, IgnoreOrder: r.f.ignoreOrder},
		Limits: estate.Limits{Units: r.f.parallelism, Calls: r.op.parallelism, All: r.f.calls},
		Digest: r.saves(), DropPlans: r.name == "plan" && !r.saves(), Every: every, Stop: r.stop,
		Lock: estate.LockOptions{Off: !r.op.state.on, Timeout: r.op.state.timeout},
	}, append(ds, more...)
}

// run runs an operation and tells what goes on.
func (r *estateRun) run(ctx context.Context, op estate.Op, approved map[string]*estate.Approval) []*estate.Result {
	o, ds := r.options(op)
	if ds.HasErrors() {
		r.tell(ds)
		return nil
	}
	o.Approved = approved
	if op == estate.Apply {
		r.applying()
		if approved != nil && !r.approve && !r.f.nonInteractive && r.human != nil {
			o.Ask = func(wave []*estate.Result) bool { return r.askWave(wave) }
			o.Asks = func(u *estate.Unit, e *engine.Engine, p *engine.Plan) {
				sc := &schemas{ctx: ctx, engine: e, failed: map[providerAddr]bool{}}
				r.folds.add(u.Name, view.Pieces(r.human.Style, p, sc, r.op.reveal))
			}
		}
	}
	units := 0
	for _, u := range r.estate.Units {
		if u.Excluded == "" {
			units++
		}
	}
	defer r.goLive(units)()
	o.Observe = r.observer(ctx, op)
	results := r.estate.Run(ctx, o)
	r.tellAgain()
	return results
}
