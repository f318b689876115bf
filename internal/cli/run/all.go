package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/affected"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/initialize"
	"github.com/terrace-iac/terrace/internal/cli/output"
	"github.com/terrace-iac/terrace/internal/cli/planning"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/unitlog"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/cli/validate"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/placement"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// estateRun is one run of a command over all units.
type estateRun struct {
	*command.Call
	f        *unitflags.Flags
	name     string        // command: plan, apply, destroy, validate, output or init
	words    request.Words // words after the name
	op       planning.Flags
	aged     bool // -refresh-max-age was given
	selected selection
	planFile string            // file of the saved plan to apply; "" for none
	saved    *estate.SavedPlan // the saved plan to apply; nil for none
	estate   *estate.Estate
	found    diag.List // errors elsewhere in the estate, which do not prevent reading outputs
	began    time.Time
	halt     halt
	shown    display
	kept     *savedplan.Files
	ruled    ruled
	page     planpage.Pager
	// whole means that the run includes all units below the working directory.
	whole   bool
	workers workersFile
	// detached means that the run continues without this process, and that the user was
	// informed.
	detached bool
	errors   sync.Map // error texts of units that ran on workers, by the name of the unit
}

// below returns a copy of the run for a unit whose output is collected apart. The copy reports
// through c.
func (r *estateRun) below(c *command.Call) *estateRun {
	out := &estateRun{
		Call: c, f: r.f, name: r.name, words: r.words, op: r.op, aged: r.aged, selected: r.selected, saved: r.saved, estate: r.estate,
		began: r.began, halt: r.halt, shown: newDisplay(c.Report, r.name, r.f), kept: r.kept, page: planpage.Pager{Call: c, File: r.f.HTML, To: r.op.Markdown, Kept: r.kept},
	}
	out.shown.log, out.shown.summary.Width = r.shown.log, r.shown.summary.Width
	return out
}

// A selection contains the objects that the flags and their files select. Empty lists select
// all.
type selection struct{ targets, excludes []addr.Target }

// halt contains the parts of a run that an interrupt ends.
type halt struct {
	stop   chan struct{}   // closed to prevent that anything more begins
	asking context.Context // canceled to end open questions
}

// runAll runs a command over the units below the working directory. Without flags that select
// several units, it applies a saved plan to the unit in the working directory.
func runAll(ctx context.Context, c *command.Call, name string, f *unitflags.Flags, args []string) int {
	over, words := OverOf(name), args
	if name == "drift" {
		name, args = "plan", append([]string{"-refresh-only"}, args...)
	}
	if ds := engineOf(c, f); ds.HasErrors() {
		return c.Fail(ds)
	}
	r := newRun(c, f, name)
	r.words = units.WordsOf(c, name, args)
	units.AddWordsOfRun(&r.words, name, f)
	if code := r.takeWords(ctx, over, words); code != 0 {
		return code
	}
	return r.start(ctx)
}

// newRun returns a run of a command, without the options of the command.
func newRun(c *command.Call, f *unitflags.Flags, name string) *estateRun {
	r := &estateRun{Call: c, f: f, name: name, halt: halt{stop: make(chan struct{})}, shown: newDisplay(c.Report, name, f), kept: &savedplan.Files{Call: c, Dir: f.OutDir, JSONDir: f.JSONOutDir, Saving: &estate.Saving{}}}
	r.page = planpage.Pager{Call: c, File: f.HTML, Kept: r.kept}
	return r
}

// start opens the units and runs the command over them, once its options are set.
func (r *estateRun) start(ctx context.Context) int {
	c, f := r.Call, r.f
	r.page.To = r.op.Markdown
	if !f.AllChanges && (r.name == "plan" || r.approved()) { // a user who is asked sees everything
		r.shown.summary.Limit = unitview.MostLines
	}
	if c.System.LimitHeap != nil {
		c.System.LimitHeap() // an estate has many units, and a CI machine often little memory
	}
	if r.Serving == nil {
		if ds := planning.LoadAccepted(c, &r.op); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	var err error
	if r.shown.log, err = unitlog.New(f.Log(), c.Dir, c.Now); err != nil {
		return c.Report.UsageError("run", "Failed to parse command-line flags", err.Error())
	}
	r.shown.log.Command = append([]string{r.name}, r.words.Args...)
	r.shown.summary.Mode = r.about().Mode()
	if r.name != "output" && c.Serving == nil { // the client sets up its own streams
		if !r.op.Json.Use(c.Report) {
			return 1
		}
		defer c.Report.Finish()
	}
	if c.Serving == nil && (r.name == "apply" || r.name == "destroy") && c.Report.Human == nil && !r.op.Approved && !f.NonInteractive && r.saved == nil {
		return c.Fail(diag.Errorf(diag.CodeCLINotApproved, nil, "Approval required", "%s cannot ask for approval when -json is set. Use -auto-approve or --non-interactive.", view.Product))
	}
	o, ds := r.estateOptions()
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	r.began = o.At
	e, more := units.Open(ctx, c, o)
	defer e.Close(ctx)
	if over, code := r.take(ctx, e, ds, more); over {
		return code
	}
	if c.Serving != nil {
		return r.serve(ctx)
	}
	return r.dispatch(ctx)
}

// takeArgs parses the command's words, and reads the saved plan that is named there or by
// --out-dir.
func (r *estateRun) takeArgs(over *flags.Over, args []string) (code int) {
	rest, code := r.parseArgs(over, args)
	switch {
	case code != 0:
		return code
	case r.name == "apply" && len(rest) == 1:
		if r.planFile = rest[0]; r.limited() {
			return r.Fail(diag.Errorf(diag.CodeCLIPlanOptions, nil, "Can't change plan options", "A saved plan is applied with the options that it was made with, so -defer, -destroy, -minimal-refresh, -refresh, -refresh-only, -replace, -rounds, -show-causes, -target and -exclude cannot be given with one."))
		}
	case len(rest) > 0:
		return r.Report.UsageError("run", "Too many command line arguments", fmt.Sprintf("%q cannot be given with --all.", rest[0]))
	}
	return r.readSaved()
}

// estateOptions returns the options for opening the units.
func (r *estateRun) estateOptions() (estate.Options, diag.List) {
	o, ds := units.OptionsOf(r.Call, r.f, r.name, r.words, r.op.Vars)
	if ds.HasErrors() {
		return o, ds
	}
	o.Discovery.Destroy, o.Discovery.Generate, o.Discovery.Whole = r.op.Plan.Mode == plan.Destroy, !r.f.NoStackGenerate, true
	if alone := !r.f.Many(); alone {
		ds = r.alone(&o)
	}
	r.whole = r.f.All && !r.f.Graph && r.saved == nil && len(o.Discovery.Filters) == 0
	o.ValuesElsewhere = o.ValuesElsewhere || r.saved != nil // the plan contains values
	if r.op.State.Journal != "" {
		o.Host.KeepSegments = workdir.KeepSegmentsOf(r.op.State.Journal, false)
	}
	switch o.At = r.Now().UTC(); {
	case r.Serving != nil:
		o.At, o.Host.Worker = r.Serving.Job.At, r.Serving
		o.Host.KeepSegments = max(o.Host.KeepSegments, workdir.WhereRoom)
		if r.Serving.Job.Tree != "" {
			o.Host.CopiedTo = r.Serving.Local
		}
	case r.saved != nil:
		o.At = r.saved.About.Time
	}
	return o, ds
}

// take stores the opened estate in r after checks. said are the messages from before it was
// opened, and ds those from opening. over means that the command is complete, with the exit
// status code.
func (r *estateRun) take(ctx context.Context, e *estate.Estate, said, ds diag.List) (over bool, code int) {
	ds = append(ds, e.Found.Ungenerated...)
	if r.name == "output" && e.Found.Chosen {
		r.found, ds = ds.Errors(), ds.Warnings()
	}
	if !ds.HasErrors() {
		ds = append(ds, bareIncludes(ctx, e, &r.f.FlagUse, e.Found.Units...)...)
	}
	if ds.HasErrors() {
		return true, r.failEstate(e, slices.Concat(said, ds, e.Check(ctx, r.f.Strict)).Once())
	}
	r.estate = e
	if !r.f.Many() {
		if skip, code := r.includeNamedUnit(ctx); skip {
			return true, code
		}
	}
	if r.saved != nil {
		if gone := e.Restrict(r.saved); len(gone) > 0 {
			return true, r.failEstate(e, diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is stale", "The saved plan is about units that there are no longer: %s. Nothing was applied. Plan again. If the plan destroys removed units that a --filter selected, apply it with the same --filter and with --filter-allow-destroy.", strings.Join(gone, ", ")))
		}
	}
	r.page.Found = slices.Concat(said.Warnings(), e.Found.Warnings)
	r.tellEstate(r.page.Found)
	r.tellEstate(units.Deprecated(r.Call, e, r.f, r.name == "output"))
	switch {
	case len(e.Found.Units) > 0:
	case r.f.Graph && !units.IsUnit(r.Call, &r.f.Selection):
		return true, r.failEstate(e, diag.Errorf(diag.CodeCLINotAUnit, nil, "No unit in this directory", "There is no unit in %s, and --graph runs the one in the working directory with all that need it.", r.Dir))
	default:
		return true, r.nothing(ctx)
	}
	for _, u := range e.Found.Units {
		r.shown.summary.Width = max(r.shown.summary.Width, len(u.Name))
	}
	if r.Report.Human != nil && r.Report.Human.Style.Color {
		r.shown.log.Color(unitsByName(e.Found.Units))
	}
	return false, 0
}

// nothing ends a run that has no units: it reports a warning and writes the files that the
// flags request.
func (r *estateRun) nothing(ctx context.Context) int {
	none := "There are no units in %s."
	if r.f.Many() && !r.f.All || len(r.f.Filters) > 0 {
		none = "Of the units in %s, none is one that the filters ask for."
	}
	ds := diag.Warnf(diag.CodeCLINoUnits, nil, "No units found", none, r.Dir)
	r.page.Found = append(r.page.Found, ds...)
	r.Report.Tell(ds)
	if ds := r.keep(ctx, []*estate.Result{}, true); ds.HasErrors() {
		return r.Fail(ds)
	}
	return r.written(nil)
}

func (r *estateRun) dispatch(ctx context.Context) int {
	if r.name == "output" {
		return r.outputs(ctx)
	}
	if ds := append(r.estate.Check(ctx, r.f.Strict), r.loadRules()...); ds.HasErrors() {
		return r.failEstate(r.estate, ds)
	}
	var once sync.Once
	asking, unask := context.WithCancelCause(ctx)
	defer unask(nil)
	r.halt.asking = asking
	r.Interrupts.Gently(func() {
		once.Do(func() {
			close(r.halt.stop)
			unask(errors.New("the run was interrupted"))
		})
	})
	defer r.Interrupts.Gently(nil)
	r.Interrupts.WhenKilled(r.estate.Abandon)
	defer r.Interrupts.WhenKilled(nil)
	r.Interrupts.EndsProviders(r.estate.EndProviders)
	defer r.Interrupts.EndsProviders(nil)
	switch r.name {
	case "plan":
		if ds := r.since(ctx); ds.HasErrors() {
			return r.failEstate(r.estate, ds)
		}
		results := r.run(ctx, estate.Plan, nil)
		if r.detached {
			return 0
		}
		r.shown.summary.Plans(results)
		if !r.checkRules(ctx, results) {
			r.Report.Tell(r.keep(ctx, results, false))
			r.end(results)
			return 1
		}
		if ds := r.keep(ctx, results, true); ds.HasErrors() {
			r.Report.Tell(ds)
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

// since reads what the revision of -since contains at the places that set new values.
func (r *estateRun) since(ctx context.Context) diag.List {
	if r.op.Since == "" {
		return nil
	}
	o, ds := units.LookOptions(r.Call, r.f, "plan", nil)
	if ds.HasErrors() {
		return ds
	}
	o.Discovery.Generate = !r.f.NoStackGenerate
	r.op.Plan.Was, ds = affected.EstateSince(ctx, r.Call, r.op.Since, o)
	return ds
}

// keep writes the files of a plan that the flags request. Without save, it does not write the plan.
func (r *estateRun) keep(ctx context.Context, results []*estate.Result, save bool) diag.List {
	if r.name != "plan" || results == nil {
		return nil
	}
	var ds diag.List
	if r.op.Origins != "" {
		ds = r.writeOrigins(results)
	}
	r.shown.summary.Folds = unitview.NewFolds() // free the printed changes, which may be large
	for _, res := range results {               // add the excluded units, which did not run
		r.page.Note(ctx, r.estate, res)
	}
	if r.op.Drift {
		units, read := r.acceptedDrift(results)
		r.page.All = append(r.page.All, planning.AcceptedWarnings(&r.op, units, read)...)
	}
	about := r.about()
	if r.f.HTML != "" || r.kept.File != "" {
		about.Branch, about.Revision = r.revision(ctx)
		about.Flags = shownFlags(r.words.Args)
	}
	if save && r.kept.Wanted() {
		ds = slices.Concat(ds, r.kept.Write(about, results, worst(results) == 0), r.kept.WriteEach(about, results))
	}
	return append(ds, r.page.Draw(r.estate, about, results)...)
}

// revision returns the branch and the commit of the working directory. They are "" if they are not
// known.
func (r *estateRun) revision(ctx context.Context) (branch, commit string) {
	if r.NoPrograms {
		return "", ""
	}
	repo := git.Repo{Dir: r.Dir, Environ: r.Env, Exec: r.Run}
	commit, err := repo.Run(ctx, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
	if err != nil {
		return "", ""
	}
	if branch, err = repo.Run(ctx, "rev-parse", "--abbrev-ref", "HEAD"); err != nil || branch == "HEAD" {
		branch = "" // no branch is checked out
	}
	return branch, commit
}

// shownFlags returns the words of a command for the header of a page, without the values of
// variables, which may be secret.
func shownFlags(words []string) []string {
	var out []string
	value := false // the next word is the value of -var
	for _, w := range words {
		name, rest, found := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case value:
			name, _, _ = strings.Cut(w, "=")
			w = name + "=…"
		case strings.HasPrefix(w, "-") && name == "var" && found:
			name, _, _ = strings.Cut(rest, "=")
			w = "-var=" + name + "=…"
		}
		value = !value && !found && strings.HasPrefix(w, "-") && name == "var"
		out = append(out, w)
	}
	return out
}

// writeOrigins writes the file of -causes-out.
func (r *estateRun) writeOrigins(results []*estate.Result) diag.List {
	type unit struct {
		Name    string        `json:"name"`
		Changes []view.Origin `json:"changes"`
	}
	units := []unit{}
	for _, name := range unitview.Names(results) {
		if of := r.shown.summary.Folds.OriginsOf(name); len(of) > 0 {
			units = append(units, unit{name, of})
		}
	}
	return view.WriteOrigins(r.ReportPath(r.op.Origins), map[string]any{"format_version": "1.0", "units": units})
}

// OverOf returns the form of a command that processes many units in one run. nil means that
// the command runs once for each unit.
func OverOf(name string) *flags.Over {
	switch name {
	case "plan":
		return planning.PlanOver()
	case "apply":
		return planning.ApplyOver()
	case "destroy":
		return planning.DestroyOver()
	case "drift":
		return planning.DriftOver()
	case "output":
		return output.Over()
	case "validate":
		return validate.Over()
	case "init":
		return initialize.Over()
	}
	return nil
}

// parseArgs parses the flags of the command that runs in the units, and returns the other
// words.
func (r *estateRun) parseArgs(over *flags.Over, args []string) (rest []string, code int) {
	rest, given, err := over.Flags(&r.op.Request).Parse(args, r.Env, false)
	if err != nil {
		return nil, r.Report.UsageError(r.name, "Failed to parse command-line flags", err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(over.Refused)) {
		if given[name] {
			err = fmt.Errorf("-%s %s, so it cannot be given with --all: run the command in the unit's own directory", name, over.Refused[name])
		}
	}
	switch {
	case r.name != "plan" && r.f.HTML != "":
		err = planpage.NoPage()
	case r.op.Plan.GenerateTo == "":
	case filepath.IsAbs(r.op.Plan.GenerateTo):
		err = errors.New("-generate-config-out is a path in the working directory of each unit, so it cannot be absolute with --all")
	case r.f.On != "":
		err = errors.New("-generate-config-out writes into the working directories of units, which are elsewhere with --on: plan without --on")
	}
	if err != nil {
		return nil, r.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "%s.", err))
	}
	if over.Settle != nil {
		over.Settle(&r.op.Request)
	}
	r.kept.File, r.aged = r.op.Out, given["refresh-max-age"]
	return rest, 0
}

// approver shows deferred actions that can be planned now, and asks the user about them.
type approver struct {
	*estateRun
	ctx context.Context
}

func (r approver) Deferred(u *estate.Unit, e *engine.Engine, p *plan.Plan) {
	r.shown.summary.Folds.Add(u.Name, view.ShowCauses(r.Report.Human.Style, view.Pieces(r.Report.Human.Style, p, project.NewSchemas(r.ctx, e), r.op.Reveal), r.op.Plan.Causes))
}

func (r approver) Approve(wave []*estate.Result) bool { return r.askWave(wave) }

// workersFile is the workers file of the estate. It is loaded once.
type workersFile struct {
	file *placement.File // nil if not loaded yet
	ds   diag.List
	plan *placement.Plan // placement of the units of the run; nil if not computed yet
}

func (w *workersFile) load(dir string, set *source.Set) (*placement.File, diag.List) {
	if w.file == nil {
		w.file, w.ds = placement.Load(sys.Nearest(dir, placement.FileName), set)
	}
	return w.file, w.ds
}

func (r *estateRun) options(op estate.Op) (estate.RunOptions, diag.List) {
	flags := r.op
	flags.Approved = r.approved() // --non-interactive approves as -auto-approve does
	po, ds := flags.Options(r.Call)
	r.selected.targets, r.selected.excludes = po.Targets, po.Excludes
	every, more := project.PersistEvery(r.Call)
	limits := estate.Limits{Units: r.f.Parallelism, Calls: r.op.Parallelism, All: r.f.Calls}
	if r.Serving == nil {
		file, fileDiags := r.workers.load(r.Dir, r.estate.Sources())
		more = append(more, fileDiags...)
		limits.Of = file.Calls
	}
	po.Causes = po.Causes || r.name == "plan" && r.f.HTML != "" // the page always contains causes
	return estate.RunOptions{
		Op:   op,
		Plan: po, Reads: r.reads(),
		Rounds:    estate.Rounds{Most: r.op.Rounds, Allow: r.op.RoundsAllow},
		Tests:     r.tests(),
		Queue:     estate.Queue{FailFast: r.f.FailFast, IgnoreErrors: r.f.IgnoreErrors, IgnoreOrder: r.f.IgnoreOrder},
		Limits:    limits,
		DropPlans: r.name == "plan", Every: every, ShowSensitive: r.op.Reveal, Stop: r.halt.stop,
		Lock: estate.LockOptions{Off: !r.op.State.On, Timeout: r.op.State.Timeout},
	}, append(ds, more...)
}

// tests returns the directory of the test files to validate with each unit, or "" for none.
func (r *estateRun) tests() string {
	if r.op.NoTests {
		return ""
	}
	return r.op.TestDirectory
}

// reads returns which readings the run may reuse. An apply plans each unit again: it reuses
// the readings of the approved plan that are not older than ApprovedAge.
func (r *estateRun) reads() estate.Reads {
	out := estate.Reads{ApprovedAge: approvedAge, Logs: planning.ReadLogs(r.Call)}
	if r.aged {
		out.ApprovedAge = r.op.Plan.RefreshMaxAge
	}
	return out
}

// approvedAge is the default age up to which the readings of an approved plan are reused.
const approvedAge = 10 * time.Minute

// run runs an operation over the units and reports its progress. It returns nil after errors,
// which it reports.
func (r *estateRun) run(ctx context.Context, op estate.Op, approved map[string]*estate.Approval) []*estate.Result {
	return r.runOn(ctx, op, approved, r.saved, false)
}

// runOn is run for a run with --on: plan is the approved plan to send to the workers, or nil.
// asked means that the user has just approved it here.
func (r *estateRun) runOn(ctx context.Context, op estate.Op, approved map[string]*estate.Approval, plan *estate.SavedPlan, asked bool) []*estate.Result {
	o, ds := r.options(op)
	if ds.HasErrors() {
		r.Report.TellFrom(r.estate.Sources(), ds)
		return nil
	}
	o.Approved = approved
	if r.kept.Wanted() {
		o.Saving = r.kept.Saving
	}
	if op == estate.Apply {
		r.Report.Applying()
		following := r.f.Following != nil && r.f.Following.Asks
		if (approved != nil || following) && !r.op.Approved && !r.f.NonInteractive && r.Report.Human != nil {
			o.Approver = approver{r, ctx}
		}
	}
	units := 0
	for _, u := range r.estate.Found.Units {
		if u.Excluded == "" {
			units++
		}
	}
	var away *remoteScheduler
	reporter := r.reporter(op)
	o.Observe = reporter.observer(ctx)
	if r.f.On != "" {
		if away, ds = r.remotely(ctx, &o, plan, asked); ds.HasErrors() {
			r.Report.TellFrom(r.estate.Sources(), ds)
			return nil
		}
		if o.Approver != nil {
			o.Approver = remoteApprover{o.Approver, away}
		}
	}
	if away != nil && r.f.Detach {
		r.detached = away.detach()
		return nil
	}
	defer reporter.goLive(units)()
	ctx, span := telemetry.Start(ctx, "run_all_on_stack")
	span.Text("terraform_command", r.name).Text("working_dir", r.Dir)
	results := r.estate.Run(ctx, o)
	span.End()
	r.Report.Human.AboveStatus(r.shown.repeats.leftOut())
	if away != nil && away.unheard() {
		return nil
	}
	return results
}
