package planning

import (
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// checkReads returns an error for combinations of flags in which a refresh flag would have no
// effect.
func (f *Flags) checkReads() diag.List {
	o := &f.Plan
	refuse := func(name, with, why string) diag.List {
		return diag.Errorf(diag.CodeCLIFlags, nil, "Incompatible refresh options", "It doesn't make sense to use -%s at the same time as -%s, which %s.", name, with, why)
	}
	given := []struct {
		name string
		on   bool
	}{{"minimal-refresh", o.MinimalRefresh}, {"minimal-data", o.MinimalData}, {"refresh-max-age", o.RefreshMaxAge > 0}}
	for _, g := range given {
		switch {
		case !g.on:
		case o.Mode&plan.RefreshOnly != 0:
			return refuse(g.name, "refresh-only", "is there to read everything")
		case o.SkipRefresh && g.name != "minimal-data":
			return refuse(g.name, "refresh=false", "reads no objects")
		case o.Mode&plan.Destroy != 0 && g.name == "minimal-data":
			return refuse(g.name, "destroy", "plans nothing with what data sources say")
		}
	}
	return nil
}

// reads returns where the operation stores the times of reads.
func (f *Flags) reads(c *command.Call) workdir.Reads {
	return workdir.Reads{
		Logs: ReadLogs(c), Now: c.Now,
		Failed: func(err error) { c.Report.Stream.Log("The times of reads were not kept: " + diag.Reason(err)) },
	}
}

// ReadLogs returns the directory that stores the times of reads, or "" if there is no cache
// directory.
func ReadLogs(c *command.Call) string {
	if base := c.Directory.CacheDir(); base != "" {
		return filepath.Join(base, "reads")
	}
	return ""
}
