package testcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A printer reports the results of tests.
type printer struct {
	*command.Call
	options *options
	failed  bool // a state could not be saved
}

// begin prints the list of test files.
func (p *printer) begin(files []*testfile.File) {
	all, runs := map[string][]string{}, 0
	for _, f := range files {
		all[f.Name] = f.Names()
		runs += len(f.Runs)
	}
	p.Report.Stream.Typed(fmt.Sprintf("Found %s and %s", view.Numbered(len(files), "file"), view.Numbered(runs, "run block")), "test_abstract", map[string]any{"test_abstract": all})
}

// file reports one file.
func (p *printer) file(ctx context.Context, r *testrun.Result) {
	name := r.File.Name
	if h := p.Report.Human; h != nil {
		h.Say(name + "... ")
		p.status(r.Status)
		h.Say("\n")
	}
	p.Report.Stream.Typed(name+"... "+word(r.Status), "test_file", map[string]any{
		"@testfile": name, "test_file": map[string]any{"path": name, "status": string(r.Status)},
	})
	p.tell(r.Diags, name, "")
	for _, one := range r.Runs {
		p.run(ctx, r, one)
	}
	for _, c := range r.Cleanup {
		p.cleanup(r, c)
	}
}

// word returns a status as text.
func word(s testrun.Status) string {
	if s == testrun.Error {
		return "fail"
	}
	return string(s)
}

// status writes a status in its color.
func (p *printer) status(s testrun.Status) {
	switch h := p.Report.Human; s {
	case testrun.Pass:
		h.Paint(view.Green, word(s))
	case testrun.Fail, testrun.Error:
		h.Paint(view.Red, word(s))
	default:
		h.Paint(view.Gray, word(s))
	}
}

func (p *printer) run(ctx context.Context, r *testrun.Result, one *testrun.RunResult) {
	name := r.File.Name
	if h := p.Report.Human; h != nil {
		h.Say(fmt.Sprintf("  run %q... ", one.Run.Name))
		p.status(one.Status)
		h.Say("\n")
	}
	p.Report.Stream.Typed(fmt.Sprintf("  %q... %s", one.Run.Name, word(one.Status)), "test_run", map[string]any{
		"@testfile": name, "@testrun": one.Run.Name,
		"test_run": map[string]any{"path": name, "run": one.Run.Name, "status": string(one.Status)},
	})
	if p.options.verbose && one.Engine != nil {
		p.details(ctx, name, one)
	}
	if h := p.Report.Human; h != nil && p.options.verbose {
		for _, m := range one.Expected {
			h.Say(fmt.Sprintf("    expected failure of %s: %s\n", m.Extra, firstParagraph(m.Detail)))
		}
	}
	p.tell(one.Diags, name, one.Run.Name)
}

// firstParagraph returns the text before the first empty line: the message of a condition,
// without the place of the condition.
func firstParagraph(text string) string {
	first, _, _ := strings.Cut(text, "\n\n")
	return first
}

// tell reports messages about a file or a run.
func (p *printer) tell(ds diag.List, file, run string) {
	if len(ds) == 0 {
		return
	}
	more := map[string]any{"@testfile": file}
	if run != "" {
		more["@testrun"] = run
	}
	p.Report.TellAbout(ds, more)
}

// details prints the plan or the state of a run.
func (p *printer) details(ctx context.Context, file string, one *testrun.RunResult) {
	sc := project.NewSchemas(ctx, one.Engine)
	more := map[string]any{"@testfile": file, "@testrun": one.Run.Name}
	var doc planjson.Document
	var err error
	switch {
	case one.Plan != nil:
		if h := p.Report.Human; h != nil {
			_ = view.Plan(p.Stdout, h.Style, one.Plan, sc, false)
		}
		if p.Report.Stream != nil {
			doc, err = planjson.Plan(planjson.Input{Plan: one.Plan, Tree: one.Engine.Tree(), Schemas: sc, Version: config.LanguageVersion})
			more["test_plan"] = json.RawMessage(doc.Bytes())
			p.detail(err, "-verbose flag enabled, printing plan", "test_plan", more)
		}
	case one.State != nil:
		if h := p.Report.Human; h != nil {
			_ = view.State(p.Stdout, h.Style, one.State, sc, false)
		}
		if p.Report.Stream != nil {
			doc, err = planjson.State(one.State, sc, statefile.Version)
			more["test_state"] = json.RawMessage(doc.Bytes())
			p.detail(err, "-verbose flag enabled, printing state", "test_state", more)
		}
	}
}

func (p *printer) detail(err error, text, typ string, more map[string]any) {
	if err == nil {
		p.Report.Stream.Typed(text, typ, more)
	}
}

// cleanup reports objects that could not be destroyed, and saves their state.
func (p *printer) cleanup(r *testrun.Result, c *testrun.Cleanup) {
	where := r.File.Name + "/" + c.Run.Name
	if len(c.Diags) > 0 {
		if p.Report.Human != nil {
			p.errs(fmt.Sprintf("%s encountered an error destroying resources created while executing\n%s.\n", p.Report.Names.Product(), where))
		}
	}
	if p.Report.Human != nil && p.Report.Stream == nil {
		p.tell(c.Diags, r.File.Name, c.Run.Name)
	}
	if c.Left == nil {
		if p.Report.Stream != nil {
			p.tell(c.Diags, r.File.Name, c.Run.Name)
		}
		return
	}
	var left []map[string]any
	lines := ""
	for o := range c.Left.Objects() {
		one := map[string]any{"instance": o.Instance.String()}
		lines += "  - " + o.Instance.String()
		if o.Deposed != "" {
			one["deposed_key"] = string(o.Deposed)
			lines += " (" + string(o.Deposed) + ")"
		}
		lines += "\n"
		left = append(left, one)
	}
	if c.Backend != nil {
		p.inBackend(r, c, where, lines, left)
		return
	}
	if c.Kept {
		if c.Stored {
			lines += "\n" + p.hint() + "\n"
		}
		p.kept(r, c, fmt.Sprintf("%s kept the following resources after executing %s, because of skip_cleanup:", p.Report.Names.Product(), where), lines, left)
		return
	}
	name := leftName(p.Call)
	text := fmt.Sprintf("%s left the following resources in state after executing %s, these left-over resources can be viewed by reading the statefile written to disk(%s) and they need to be cleaned up manually:", p.Report.Names.Product(), where, name)
	if p.Report.Human != nil {
		p.errs("\n" + wrap.Fit(wrap.Words(text, 77), p.Report.Human.Style.Width, 0) + "\n" + lines)
	}
	if s := p.Report.Stream; s != nil {
		message := fmt.Sprintf("%s left some resources in state after executing %s, these left-over resources can be viewed by reading the statefile written to disk(%s) and they need to be cleaned up manually:", p.Report.Names.Product(), where, name)
		s.TypedError(message, "test_cleanup", map[string]any{"@testfile": r.File.Name, "@testrun": c.Run.Name, "test_cleanup": map[string]any{"failed_resources": left}})
		p.tell(c.Diags, r.File.Name, c.Run.Name)
	}
	p.save(c.Left, name)
	if c.Stored && p.Report.Human != nil {
		p.errs("\n" + p.hint() + "\n")
	}
}

// hint names the command that destroys the objects of a state that remains.
func (p *printer) hint() string {
	return fmt.Sprintf("To destroy the resources, run %q.", p.Report.Names.Program()+" test cleanup")
}

// kept reports objects that a test keeps on purpose.
func (p *printer) kept(r *testrun.Result, c *testrun.Cleanup, text, lines string, left []map[string]any) {
	if h := p.Report.Human; h != nil {
		h.Say("\n" + wrap.Fit(wrap.Words(text, 77), h.Style.Width, 0) + "\n" + lines)
	}
	p.Report.Stream.Typed(text, "test_cleanup", map[string]any{"@testfile": r.File.Name, "@testrun": c.Run.Name, "test_cleanup": map[string]any{"kept_resources": left}})
}

// inBackend reports objects whose state is in the backend of a run.
func (p *printer) inBackend(r *testrun.Result, c *testrun.Cleanup, where, lines string, left []map[string]any) {
	more := map[string]any{"@testfile": r.File.Name, "@testrun": c.Run.Name}
	if c.Kept {
		p.kept(r, c, fmt.Sprintf("%s kept the following resources after executing %s. Their state is in the %q backend of the test, with which the next test begins:", p.Report.Names.Product(), where, c.Backend.Type), lines, left)
		return
	}
	text := fmt.Sprintf("%s left the following resources in state after executing %s. Their state is in the %q backend of the test:", p.Report.Names.Product(), where, c.Backend.Type)
	if p.Report.Human != nil {
		p.errs("\n" + wrap.Fit(wrap.Words(text, 77), p.Report.Human.Style.Width, 0) + "\n" + lines)
	}
	if s := p.Report.Stream; s != nil {
		more["test_cleanup"] = map[string]any{"failed_resources": left}
		s.TypedError(text, "test_cleanup", more)
		p.tell(c.Diags, r.File.Name, c.Run.Name)
	}
}

// save writes the state of the remaining objects to a file.
func (p *printer) save(left *state.State, name string) {
	var b bytes.Buffer
	err := statefile.Write(&b, left, true)
	if err == nil {
		err = atomicfile.Write(p.Path(name), b.Bytes(), 0o600)
	}
	if err != nil {
		p.failed = true
		p.Report.Tell(diag.Errorf(diag.CodeStateFile, nil, "Failed to write state", "The state of what could not be destroyed cannot be written to %s: %s.", name, err))
		return
	}
	if p.Report.Human != nil {
		p.errs("\nWriting state to file: " + name + "\n")
	}
	p.Report.Stream.Log("Writing state to file: " + name)
}

func (p *printer) errs(text string) { fmt.Fprint(p.Stderr, text) }

// A summary contains the counts of all runs.
type summary struct {
	Status  testrun.Status `json:"status"`
	Passed  int            `json:"passed"`
	Failed  int            `json:"failed"`
	Errored int            `json:"errored"`
	Skipped int            `json:"skipped"`
}

// end reports the summary, and returns the exit status.
func (p *printer) end(results []*testrun.Result) int {
	n := map[testrun.Status]int{}
	status := testrun.Pass
	for _, r := range results {
		status = status.Worse(r.Status)
		for _, one := range r.Runs {
			n[one.Status]++
		}
	}
	good := status != testrun.Fail && status != testrun.Error
	text := "Failure!"
	if good {
		text = "Success!"
	}
	rest := fmt.Sprintf(" %d passed, %d failed", n[testrun.Pass], n[testrun.Fail]+n[testrun.Error])
	if n[testrun.Skip] > 0 {
		rest += fmt.Sprintf(", %d skipped", n[testrun.Skip])
	}
	rest += "."
	if h := p.Report.Human; h != nil {
		h.Say("\n")
		if good {
			h.Paint(view.Green, text)
		} else {
			h.Paint(view.Red, text)
		}
		h.Say(rest + "\n")
	}
	p.Report.Stream.Typed(text+rest, "test_summary", map[string]any{"test_summary": summary{status, n[testrun.Pass], n[testrun.Fail], n[testrun.Error], n[testrun.Skip]}})
	if !good || p.failed {
		return 1
	}
	return 0
}
