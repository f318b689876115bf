package run

import (
	"os"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/unitview"
	"github.com/terrace-iac/terrace/internal/estate"
	runreport "github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
)

// errorText returns the error messages of a unit, without colors.
func (r *estateRun) errorText(res *estate.Result) string {
	var b strings.Builder
	if r.estate == nil {
		return ""
	}
	if text, ok := r.errors.Load(res.Unit.Name); ok && text != "" { // from a worker
		return text.(string)
	}
	inUnit, inModule := unitview.SplitByOrigin(res, r.Report.Redactor.List(res.Diags.Errors()))
	codes := r.Report.Options.ShowCodes
	_ = (&diag.Printer{Set: r.estate.Sources(), Relative: r.Report.Relative, Names: r.Report.Names, Codes: codes}).Print(&b, inUnit)
	_ = (&diag.Printer{Set: res.Set, Relative: r.Report.Relative, Names: r.Report.Names, Codes: codes}).Print(&b, inModule)
	return strings.TrimSpace(b.String())
}

// writeReports writes the files of --report-file and --report-schema-file.
func (r *estateRun) writeReports(results []*estate.Result) error {
	if r.f.ReportSchema != "" {
		if err := os.WriteFile(r.Path(r.f.ReportSchema), runreport.Schema(), 0o644); err != nil {
			return err
		}
	}
	if r.f.Report == "" {
		return nil
	}
	format := r.f.ReportFormat
	if format == "" {
		format = "csv"
		if strings.HasSuffix(r.f.Report, ".json") {
			format = "json"
		}
	}
	o := runreport.Options{Format: format, Command: r.name, Args: r.words.Args, Errors: r.errorText}
	if r.name == "apply" && r.op.Plan.Mode == plan.Destroy {
		o.Command = "destroy"
		o.Args, _ = flag.Flags{flag.Ignored("destroy", "", "")}.Take(r.words.Args, true)
	}
	if r.f.Graph { // Terragrunt's report of a run with --graph is relative to the graph root
		o.Root = r.estate.Found.GraphRoot()
	}
	b, err := runreport.Make(results, o)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Path(r.f.Report), b, 0o644)
}
