package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

// outputs prints the outputs of every unit.
func (r *estateRun) outputs(ctx context.Context) int {
	all, results := r.estate.Outputs(ctx, nil)
	reported := new(report.Reported)
	reported.Fresh(Messages(results))
	r.tellEstate(Messages(results).Once())
	afterwards(r.Call, r.estate, append(r.found, r.estate.Check(ctx, r.f.Strict).Errors()...), reported)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	if r.op.Json.On {
		doc := map[string]any{}
		for _, name := range names {
			m, err := view.JSONOutputs(all[name], true)
			if err != nil {
				return r.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write outputs", "The outputs of %s cannot be written as JSON: %s.", name, err))
			}
			doc[name] = m
		}
		b, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			return r.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write outputs", "The outputs cannot be written as JSON: %s.", err))
		}
		fmt.Fprintf(r.Stdout, "%s\n", b)
		return r.written(results)
	}
	for _, name := range names {
		if len(all[name]) > 0 {
			fmt.Fprintf(r.Stdout, "# %s\n", name)
			_ = view.Outputs(r.Stdout, all[name], r.op.Reveal)
		}
	}
	return r.written(results)
}

// Messages returns the messages of all units.
func Messages(results []*estate.Result) diag.List {
	var ds diag.List
	for _, res := range results {
		ds = append(ds, res.Diags...)
	}
	return ds
}
