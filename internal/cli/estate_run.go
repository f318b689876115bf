package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/source"
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

	mu    sync.Mutex
	texts map[string]string // the plans of units as they are shown
	width int
}

// runAll runs a command over the units below the working folder.
func (s *session) runAll(ctx context.Context, name string, f *unitFlags, args []string) int {
	r := &estateRun{session: s, f: f, name: name, args: args, stop: make(chan struct{}), texts: map[string]string{}, width: len("Total")}
	if f.graph {
		return s.fail(diag.Errorf(nil, "Failed to parse command-line flags", "--graph is not part of this version: use --all with --filter '...%s'.", s.Dir))
	}
	rest, code := r.parseArgs(args)
	if code != 0 {
		return code
	}
	if len(rest) > 0 {
		return s.usageError("run", "Too many command line arguments", fmt.Sprintf("%q cannot be given with --all.", rest[0]))
	}
	if r.op.json.on && name != "output" {
		if !s.useJSON(r.op.json) {
			return 1
		}
		defer s.finish()
	}
	if (name == "apply" || name == "destroy") && s.human == nil && !r.approve && !f.nonInteractive {
		return s.fail(diag.Errorf(nil, "Approval required", "%s cannot ask for approval when -json is set. Use -auto-approve or --non-interactive.", view.Product))
	}
	o, ds := s.estateOptions(f, name, args, r.op.vars)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	o.Destroy = r.op.destroy
	e, more := estate.Open(ctx, o)
	more = append(more, e.Ungenerated...)
	if ds = append(ds, more...); ds.HasErrors() {
		return r.failEstate(e, ds)
	}
	r.estate = e
	r.tellEstate(e.Warnings)
	if !f.noDeprecation {
		r.tellEstate(e.Deprecated())
	}
	if len(e.Units) == 0 {
		s.tell(diag.Warnf(nil, "No units found", "There are no units in %s.", s.Dir))
		return 0
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
	r.gently(func() { once.Do(func() { close(r.stop) }) })
	defer r.gently(nil)
	switch r.name {
	case "plan":
		results := r.run(ctx, estate.Plan, nil)
		r.showPlans(results)
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

// parseArgs reads the flags of the command that runs in the units.
func (r *estateRun) parseArgs(args []string) (rest []string, code int) {
	f := newFlags(r.name)
	out := ""
	switch r.name {
	case "plan":
		r.op.add(f)
		f.StringVar(&out, "out", "", "")
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
	if err := r.unavailable(f, out); err != nil {
		return nil, r.fail(diag.Errorf(nil, "Failed to parse command-line flags", "%s", err))
	}
	if r.name == "destroy" {
		r.op.destroy = true
	}
	return f.Args(), 0
}

func (r *estateRun) unavailable(f *flag.FlagSet, out string) error {
	var err error
	f.Visit(func(fl *flag.Flag) {
		switch fl.Name {
		case "state", "state-out", "backup", "json-into", "replace", "generate-config-out":
			err = notHere("-"+fl.Name+" with --all", "")
		}
	})
	if out != "" {
		return notHere("-out with --all", "apply with --all plans each unit again just before its turn")
	}
	return err
}

func (r *estateRun) options(op estate.Op) (estate.RunOptions, diag.List) {
	po, ds := r.op.options(r.session)
	every, more := r.persistEvery()
	return estate.RunOptions{
		Op: op, Destroy: r.op.destroy, RefreshOnly: r.op.refreshOnly, SkipRefresh: !r.op.refresh && (r.name == "plan" || r.name == "apply" || r.name == "destroy"),
		Targets: po.Targets, Excludes: po.Excludes, Parallelism: r.f.parallelism, ProviderCalls: r.op.parallelism,
		FailFast: r.f.failFast, IgnoreErrors: r.f.ignoreErrors, IgnoreOrder: r.f.ignoreOrder, Every: every, Stop: r.stop,
		Lock: estate.LockOptions{Off: !r.op.state.on, Timeout: r.op.state.timeout},
	}, append(ds, more...)
}

// run runs an operation and tells what goes on.
func (r *estateRun) run(ctx context.Context, op estate.Op, approved map[string]*estate.Result) []*estate.Result {
	o, ds := r.options(op)
	if ds.HasErrors() {
		r.tell(ds)
		return nil
	}
	o.Approved = approved
	if op == estate.Apply {
		r.applying()
	}
	o.Observe = estate.Observer{
		Event: func(e engine.Event) {
			if r.human != nil && !r.human.Concise && op == estate.Apply {
				if text := view.Text(e, true); text != "" {
					r.human.Say(prefixed(e.Unit, text))
				}
			}
			r.streamOf(e.Unit).Event(e)
		},
		Planned: func(u *estate.Unit, e *engine.Engine, p *engine.Plan) { r.planned(ctx, op, u, e, p) },
		Ended:   func(res *estate.Result) { r.ended(op, res) },
		Log:     func(u *estate.Unit, line string) { r.human.Say(prefixed(u.Name, line)) },
	}
	return r.estate.Run(ctx, o)
}

func prefixed(unit, text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString("[" + unit + "] " + line + "\n")
	}
	return b.String()
}

// streamOf is the stream with the unit on every line; nil without -json.
func (r *estateRun) streamOf(unit string) *view.Stream {
	if r.stream == nil {
		return nil
	}
	return &view.Stream{Out: unitWriter{r, unit}, Now: r.stream.Now, Messages: diag.JSON{Set: r.estate.Sources()}, Version: r.stream.Version}
}

// unitWriter adds the unit to the JSON objects that are written to it, one each.
type unitWriter struct {
	r    *estateRun
	unit string
}

func (w unitWriter) Write(b []byte) (int, error) {
	rest, ok := bytes.CutPrefix(b, []byte("{"))
	if !ok {
		return 0, errors.New("not a JSON object")
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	_, err := io.WriteString(w.r.Stdout, fmt.Sprintf("{\"unit\":%q,", w.unit)+string(rest))
	return len(b), err
}

// planned keeps the text of a plan while its provider schemas can be read.
func (r *estateRun) planned(ctx context.Context, op estate.Op, u *estate.Unit, e *engine.Engine, p *engine.Plan) {
	if st := r.streamOf(u.Name); st != nil && op == estate.Plan {
		st.Plan(p)
	}
	if r.human == nil || op != estate.Plan || !p.HasChanges() {
		return
	}
	var b bytes.Buffer
	sc := &schemas{ctx: ctx, engine: e, failed: map[providerAddr]bool{}}
	if err := view.Plan(&b, r.human.Style, p, sc, r.op.reveal); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[u.Name] = b.String()
}

// ended tells how a unit's turn ended.
func (r *estateRun) ended(op estate.Op, res *estate.Result) {
	ds := r.filter(res.Diags)
	if st := r.streamOf(res.Unit.Name); st != nil {
		if res.Set != nil {
			of := &view.Stream{Out: st.Out, Now: st.Now, Messages: diag.JSON{Set: res.Set}, Version: st.Version}
			of.Tell(ds)
		} else {
			st.Tell(ds)
		}
		st.Typed(res.Unit.Name+": "+string(res.Status), "unit_complete", map[string]any{
			"result": string(res.Status), "reason": res.Reason, "cause": res.Cause, "deferred": res.Deferred,
			"changes": map[string]int{"add": res.Counts.Add, "change": res.Counts.Change, "remove": res.Counts.Destroy, "import": res.Counts.Import, "forget": res.Counts.Forget},
		})
		return
	}
	if len(ds) > 0 {
		r.tellUnit(res, ds)
	}
	r.human.Say(fmt.Sprintf("[%s] %s\n", res.Unit.Name, sentence(op, res)))
}

// tellUnit prints messages of a unit with the text that they are about.
func (r *estateRun) tellUnit(res *estate.Result, ds diag.List) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range ds {
		if m.Address == "" {
			m.Address = "unit " + res.Unit.Name
		}
	}
	var inUnit, inModule diag.List
	for _, m := range ds {
		if m.At != nil && res.Set != nil && res.Set.File(m.At.Filename) != nil {
			inModule = append(inModule, m)
		} else {
			inUnit = append(inUnit, m)
		}
	}
	_ = r.printer(r.estate.Sources()).Split(r.Stdout, r.Stderr, inUnit)
	_ = r.printer(res.Set).Split(r.Stdout, r.Stderr, inModule)
}

// printer prints messages about the files of a set.
func (s *session) printer(set *source.Set) *diag.Printer {
	p := s.human.Printer
	return &diag.Printer{
		Set: set, Color: p.Color, Width: p.Width, Program: p.Program,
		CompactWarnings: p.CompactWarnings, ConsolidateWarnings: p.ConsolidateWarnings, ConsolidateErrors: p.ConsolidateErrors,
	}
}

func (r *estateRun) tellEstate(ds diag.List) {
	if len(ds) == 0 {
		return
	}
	if r.name == "output" { // what others read from Stdout stays clean
		_ = r.printer(r.estate.Sources()).Print(r.Stderr, r.filter(ds))
		return
	}
	r.tellWith(r.estate.Sources(), ds)
}

// tellWith tells messages about the files of a set.
func (s *session) tellWith(set *source.Set, ds diag.List) {
	if s.human != nil {
		_ = s.printer(set).Split(s.Stdout, s.Stderr, s.filter(ds))
	}
	if s.stream != nil {
		st := &view.Stream{Out: s.stream.Out, Now: s.stream.Now, Messages: diag.JSON{Set: set}, Version: s.stream.Version}
		st.Tell(s.filter(ds))
	}
}

func (r *estateRun) failEstate(e *estate.Estate, ds diag.List) int {
	r.estate = e
	r.tellEstate(ds)
	return 1
}

// sentence tells in a line what came of a unit.
func sentence(op estate.Op, res *estate.Result) string {
	n := plan.Counts{Add: res.Counts.Add, Change: res.Counts.Change, Destroy: res.Counts.Destroy, Import: res.Counts.Import, Forget: res.Counts.Forget}
	switch {
	case res.Status == estate.EarlyExit:
		return "not run: " + earlyWhy(res)
	case res.Status == estate.Failed:
		return "failed: " + res.Cause
	case res.Reason == "error ignored":
		return "failed, which the ignore block " + res.Cause + " takes for success"
	case res.Deferred != "":
		return "deferred: " + res.Deferred
	case op == estate.Validate:
		return "valid"
	case op == estate.Init:
		return "ready"
	case op == estate.Apply:
		return fmt.Sprintf("applied: %d added, %d changed, %d destroyed", n.Add, n.Change, n.Destroy)
	case !res.Changes:
		return "no changes"
	}
	return fmt.Sprintf("plan: %d to add, %d to change, %d to destroy", n.Add, n.Change, n.Destroy)
}

func earlyWhy(res *estate.Result) string {
	if res.Reason == "ancestor error" {
		return "it needs " + res.Cause + ", which failed"
	}
	return res.Cause
}

// apply plans, asks and applies; approved beforehand, each unit is planned and
// applied in its turn.
func (r *estateRun) apply(ctx context.Context) int {
	if r.approve || r.f.nonInteractive {
		return r.end(r.run(ctx, estate.Apply, nil))
	}
	results := r.run(ctx, estate.Plan, nil)
	r.showPlans(results)
	if code := worst(results); code != 0 || !changes(results) || slices.ContainsFunc(results, func(x *estate.Result) bool { return x.Status == estate.EarlyExit }) {
		return r.end(results)
	}
	verb := "perform these actions"
	if r.op.destroy {
		verb = "destroy all resources of these units"
	}
	r.table(results)
	answer, err := r.ask(ctx, question{title: "\nDo you want to " + verb + "?", text: "Only 'yes' will be accepted to approve. What is deferred is planned and applied when what it waits for is there."})
	if err != nil {
		return r.fail(diag.Errorf(nil, "Apply was not approved", "There was no answer to the question whether to go on: %s. Answer it, or use the -auto-approve option.", err))
	}
	if answer != "yes" {
		r.human.Say("Apply cancelled.\n")
		return 0
	}
	approved := map[string]*estate.Result{}
	for _, res := range results {
		approved[res.Unit.Name] = res
	}
	return r.end(r.run(ctx, estate.Apply, approved))
}

func changes(results []*estate.Result) bool {
	return slices.ContainsFunc(results, func(x *estate.Result) bool { return x.Changes })
}

// worst is the highest status of the units.
func worst(results []*estate.Result) int {
	code := 0
	for _, res := range results {
		code = max(code, res.Code)
	}
	return code
}

// end prints the summary, writes the report and returns the status.
func (r *estateRun) end(results []*estate.Result) int {
	if results == nil {
		return 1
	}
	if !r.f.summaryOff && r.human != nil {
		r.table(results)
	}
	if r.stream != nil {
		r.summaryJSON(results)
	}
	if r.f.report != "" || r.f.reportSchema != "" {
		if err := r.writeReports(results); err != nil {
			return r.fail(diag.Errorf(nil, "Failed to write the report", "%s.", err))
		}
	}
	code := worst(results)
	if code == 0 && r.detail && changes(results) {
		return 2
	}
	return code
}

func (r *estateRun) writeReports(results []*estate.Result) error {
	if r.f.reportSchema != "" {
		if err := os.WriteFile(r.Path(r.f.reportSchema), estate.ReportSchema(), 0o644); err != nil {
			return err
		}
	}
	if r.f.report == "" {
		return nil
	}
	format := r.f.reportFormat
	if format == "" {
		format = "csv"
		if strings.HasSuffix(r.f.report, ".json") {
			format = "json"
		}
	}
	b, err := estate.Report(results, format, r.name, r.args)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Path(r.f.report), b, 0o644)
}
