package run

import (
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// # The request of a run
//
// Flags are parsed once, by the command that the user started. A worker, and a command that
// follows the run later, get the parsed values as a request.Request.

// request returns the request of the run. The addresses in files of -target-file and
// -exclude-file are part of it, so that these files are not read again.
func (r *estateRun) request() (request.Request, diag.List) {
	dir, err := filepath.Rel(r.Launch, r.Dir)
	if err != nil {
		return request.Request{}, diag.Errorf(diag.CodeRemoteFiles, nil, "Directory outside of the run's files", "%s.", err)
	}
	o, v := r.op.Operation, &r.Report.Options
	o.Scope = flag.Scope{Targets: addresses(r.selected.targets), Excludes: addresses(r.selected.excludes), Replace: o.Scope.Replace}
	return request.Request{
		Command: r.name, Words: r.words, Dir: filepath.ToSlash(dir), NoExec: r.NoPrograms, PlanFile: r.planFile, FreshFor: r.aged,
		View: request.View{
			NoColor: v.NoColor, CompactWarnings: v.CompactWarnings, Concise: v.Concise,
			ConsolidateWarnings: v.ConsolidateWarnings, ConsolidateErrors: v.ConsolidateErrors, Deprecation: v.Deprecation,
		},
		Units: r.f.Units, Operation: o,
		State: r.op.State, JSON: r.op.Json.On, JSONInto: r.op.Json.Into,
	}, nil
}

// requested returns the run of a request. f contains the options of units.
func requested(c *command.Call, f *unitflags.Flags, q request.Request) *estateRun {
	if q.NoExec {
		c.WithoutPrograms()
	}
	r := newRun(c, f, q.Command)
	r.words, r.aged, r.planFile = q.Words, q.FreshFor, q.PlanFile
	r.op.Request = flags.Request{State: q.State, Json: flags.JSON{On: q.JSON, Into: q.JSONInto}, Operation: q.Operation}
	r.kept.File = r.op.Out
	return r
}

// Serve runs the units of the job of the call's session at the request of another process, until
// the session ends. f contains the options of units.
func Serve(ctx context.Context, c *command.Call, f *unitflags.Flags, q request.Request) int {
	r := requested(c, f, q)
	if r.name == "apply" {
		if code := r.takeApproved(); code != 0 {
			return code
		}
	}
	return r.start(ctx)
}

// View sets the options of messages in a request.
func View(c *command.Call, v request.View) {
	o := &c.Report.Options
	o.NoColor, o.CompactWarnings, o.Concise = v.NoColor, v.CompactWarnings, v.Concise
	o.ConsolidateWarnings, o.ConsolidateErrors, o.Deprecation = v.ConsolidateWarnings, v.ConsolidateErrors, v.Deprecation
}
