package run

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
)

// takeWords parses the words of the command. If they are invalid, it still writes the report file,
// in which every unit failed, as Terragrunt does. Errors in the flags of run itself write no
// report.
func (r *estateRun) takeWords(ctx context.Context, over *flags.Over, args []string) (code int) {
	if r.f.Report == "" && r.f.ReportSchema == "" {
		return r.takeArgs(over, args)
	}
	var mistakes diag.List
	r.Report.Note = func(ds diag.List) { mistakes = append(mistakes, ds.Errors()...) }
	code = r.takeArgs(over, args)
	r.Report.Note = nil
	if code == 0 {
		return 0
	}
	o, ds := units.Options(r.Call, r.f, r.name, nil, nil)
	if ds.HasErrors() {
		return code
	}
	o.Discovery.Lenient, o.Discovery.Destroy = true, r.name == "destroy"
	e, ds := units.Open(ctx, r.Call, o)
	defer e.Close(ctx)
	if r.estate = e; ds.HasErrors() {
		return code
	}
	if err := r.writeReports(e.Invalid(mistakes)); err != nil {
		r.Report.Tell(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the report", "%s.", err))
	}
	return code
}
