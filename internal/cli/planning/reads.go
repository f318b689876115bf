package planning

import (
	"path/filepath"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/operation"
)

// readFlags say what a plan does not read.
type readFlags struct {
	Minimal     bool          // objects that do not change
	MinimalData bool          // data sources with the arguments of the last time
	MaxAge      time.Duration // what an earlier command read since then
}

func (o *readFlags) flags() command.Flags {
	return command.Flags{
		command.Bool(&o.Minimal, "minimal-refresh", "Check for external changes only of those objects that the plan changes, going by configuration and state; -refresh=config is the same. What differs outside of the others is not found."),
		command.Bool(&o.MinimalData, "minimal-data", "Read a data source only where its arguments are new or something that it depends on changes."),
		command.Duration(&o.MaxAge, "refresh-max-age", "duration", "Do not read again what a command here has read so lately, such as 10m, if the plan does not change it."),
	}
}

// check refuses flags that a plan with the others would have no use for.
func (o *readFlags) check(f *Flags) diag.List {
	refuse := func(name, with, why string) diag.List {
		return diag.Errorf(nil, "Incompatible refresh options", "It doesn't make sense to use -%s at the same time as -%s, which %s.", name, with, why)
	}
	given := []struct {
		name string
		on   bool
	}{{"minimal-refresh", o.Minimal}, {"minimal-data", o.MinimalData}, {"refresh-max-age", o.MaxAge > 0}}
	for _, g := range given {
		switch {
		case !g.on:
		case f.RefreshOnly:
			return refuse(g.name, "refresh-only", "is there to read everything")
		case !f.Refresh && g.name != "minimal-data":
			return refuse(g.name, "refresh=false", "reads no objects")
		case f.Destroy && g.name == "minimal-data":
			return refuse(g.name, "destroy", "plans nothing with what data sources say")
		}
	}
	return nil
}

// of are the flags as an operation has them.
func (o *readFlags) of(c *command.Call) operation.Reads {
	return operation.Reads{
		Minimal: o.Minimal, MinimalData: o.MinimalData, MaxAge: o.MaxAge, Logs: ReadLogs(c), Now: c.Now,
		Failed: func(err error) { c.Report.Stream.Log("The times of reads were not kept: " + diag.Reason(err)) },
	}
}

// ReadLogs is the folder for what is known of reads, "" for none.
func ReadLogs(c *command.Call) string {
	if base := c.Folder().CacheDir(); base != "" {
		return filepath.Join(base, "reads")
	}
	return ""
}
